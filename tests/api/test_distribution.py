"""Known answers: logits [2, 1, 0, -1]."""

from __future__ import annotations

import numpy as np
import pytest

import tokenglass as tg
from tokenglass.errors import ParameterError


@pytest.fixture
def four(model: tg.LanguageModel) -> tg.Distribution:
    return tg.Distribution(np.array([2, 1, 0, -1], np.float32), model.vocabulary)


@pytest.mark.parametrize(
    ("temperature", "probabilities", "entropy"),
    [
        (1.0, [0.643914, 0.236883, 0.087144, 0.032059], 0.947537),
        (2.0, [0.455054, 0.276004, 0.167405, 0.101536], 1.245050),
        (0.5, [0.8650, 0.1171, 0.0158, 0.0021], 0.455429),
        (0.0, [1, 0, 0, 0], 0.0),
        (1e-9, [1, 0, 0, 0], 0.0),
    ],
)
def test_softmax_and_entropy(
    four: tg.Distribution, temperature: float, probabilities: list[float], entropy: float
) -> None:
    view = four.temperature(temperature)
    np.testing.assert_allclose(view.probabilities, probabilities, atol=6e-5)
    assert view.entropy == pytest.approx(entropy, abs=6e-5)
    assert view.probabilities.sum() == pytest.approx(1.0, abs=1e-12)


def test_a_view_acts_on_the_logits_and_not_on_a_view(four: tg.Distribution) -> None:
    np.testing.assert_array_equal(
        four.temperature(2.0).temperature(0.5).probabilities, four.temperature(0.5).probabilities
    )
    np.testing.assert_array_equal(four.temperature(2.0).logits, four.logits)


def test_shown_tokens_and_the_rest_add_up_to_one(model: tg.LanguageModel) -> None:
    distribution = model.next("the", top=7)
    assert len(distribution.top()) == 7
    assert sum(t.probability for t in distribution.top()) + distribution.rest() == pytest.approx(1, abs=1e-9)


def test_a_tokens_rank_is_its_place_in_the_order(model: tg.LanguageModel) -> None:
    distribution = model.next("the")
    for token in distribution.top(300)[::37]:
        assert distribution.token(token.id) == token
    with pytest.raises(ParameterError):
        distribution.token(300)


def test_equal_logits_rank_by_id(model: tg.LanguageModel) -> None:
    flat = tg.Distribution(np.zeros(4, np.float32), model.vocabulary)
    assert [t.id for t in flat.top(4)] == [0, 1, 2, 3]
    assert flat.token(2).rank == 3


@pytest.mark.parametrize("temperature", [-1.0, 101.0, float("nan")])
def test_a_temperature_outside_its_range_is_refused(four: tg.Distribution, temperature: float) -> None:
    with pytest.raises(ParameterError, match="temperature"):
        four.temperature(temperature)


def test_logits_cannot_be_changed(model: tg.LanguageModel) -> None:
    with pytest.raises(ValueError, match="read-only"):
        model.next("the").logits[0] = 1.0
