from __future__ import annotations

from typing import Any

import pytest

from tokenglass.errors import ParameterError
from tokenglass.sampling import Sampling


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("temperature", float("inf")),
        ("temperature", "1"),
        ("temperature", True),
        ("top_p", 1.01),
        ("top_p", -0.01),
        ("top_p", float("nan")),
        ("top_k", -2),
        ("top_k", 1.5),
        ("top_k", True),
        ("seed", -1),
        ("seed", 1 << 64),
        ("seed", 1.0),
    ],
)
def test_a_value_outside_its_range_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        Sampling(**{name: value})
    assert caught.value.name == name
    assert str(caught.value).startswith(name)


def test_a_missing_seed_is_drawn_and_can_be_read_back() -> None:
    seeds = {Sampling().seed for _ in range(20)}
    assert None not in seeds
    assert len(seeds) > 1


@pytest.mark.parametrize(
    "values",
    [
        {"temperature": 0},
        {"temperature": 1e-10},
        {"temperature": 1, "top_p": 0},
        {"temperature": 1, "top_k": 1},
    ],
)
def test_what_can_only_be_the_best_token_is_greedy(values: dict[str, Any]) -> None:
    assert Sampling(**values).is_greedy


@pytest.mark.parametrize("off", [{"top_k": 0}, {"top_k": -1}, {"top_p": 1}])
def test_off_values_do_not_make_it_greedy(off: dict[str, Any]) -> None:
    assert not Sampling(temperature=0.7, **off).is_greedy
