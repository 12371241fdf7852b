"""ENGINE_CASES part C on a running engine: limits of a request (B24, B33), bias (B28), stop strings (B13)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tokenglass.engine import Engine, Request, load
from tokenglass.errors import ContextFullError, ParameterError
from tokenglass.sampling import Sampling

PROMPT = [5, 80, 70, 270]


@pytest.fixture(scope="module")
def engine(tiny_model_path: Path) -> Engine:
    return load(tiny_model_path, num_threads=1, context_length=64)


def tokens(engine: Engine, **options: Any) -> list[int]:
    request = Request(**{"prompt_ids": PROMPT, "max_tokens": 8, "ignore_eos": True, **options})
    return [token for piece in engine.stream(request) for token in piece.token_ids]


def refused(engine: Engine, name: str, ask: Callable[[], object]) -> None:
    """It is refused by name, holds nothing, and the next request runs."""
    before = tokens(engine)
    with pytest.raises(ParameterError) as caught:
        ask()
    assert caught.value.name.startswith(name)
    engine.scheduler.pool.check([])
    assert not engine.scheduler.waiting
    assert tokens(engine) == before


# --- B24: max_tokens ---


@pytest.mark.parametrize("max_tokens", [None, 60, 61, 1 << 40])
def test_no_limit_or_a_large_one_is_what_fits(engine: Engine, max_tokens: int | None) -> None:
    sequence = engine.submit(Request(prompt_ids=PROMPT, max_tokens=max_tokens, ignore_eos=True))
    last = list(engine.follow(sequence))[-1]
    assert (len(sequence.ids), last.finish_reason) == (64, "length")


def test_zero_tokens_end_with_length_and_hold_nothing(engine: Engine) -> None:
    [piece] = engine.stream(Request(prompt_ids=PROMPT, max_tokens=0))
    assert (piece.text, piece.token_ids, piece.finish_reason) == ("", (), "length")
    assert piece.timings.prompt_tokens == len(PROMPT)
    engine.scheduler.pool.check([])


@pytest.mark.parametrize("max_tokens", [-1, -2, 1.5, 2.0, "5", True, 10**18, float("inf")])
def test_a_limit_that_is_none_is_refused(engine: Engine, max_tokens: Any) -> None:
    refused(engine, "max_tokens", lambda: tokens(engine, max_tokens=max_tokens))


@pytest.mark.parametrize("min_tokens", [-1, 9, 1.5, "5", None])
def test_a_minimum_that_is_none_or_above_the_limit_is_refused(engine: Engine, min_tokens: Any) -> None:
    refused(engine, "min_tokens", lambda: tokens(engine, min_tokens=min_tokens, max_tokens=8))


# --- B28: logit_bias ---


@pytest.mark.parametrize(
    "bias", [{999_999: -100}, {300: 1}, {-1: 1}, {"abc": 1}, {"5": -100}, {5: 1e9}, {5: None}]
)
def test_a_bad_bias_is_refused_and_the_engine_lives(engine: Engine, bias: Any) -> None:
    refused(engine, "logit_bias", lambda: tokens(engine, sampling=Sampling(logit_bias=bias)))


def test_minus_100_bans_every_favourite_and_100_forces_any_token(engine: Engine) -> None:
    banned: dict[int, float] = {}
    for _ in range(5):
        [best] = tokens(engine, max_tokens=1, sampling=Sampling(logit_bias=banned))
        assert best not in banned
        banned[best] = -100
    for temperature in (0.0, 1.0):
        values: dict[str, Any] = {"temperature": temperature, "seed": 3}
        assert not set(tokens(engine, max_tokens=40, sampling=Sampling(logit_bias=banned, **values))) & {
            *banned
        }
    assert tokens(engine, sampling=Sampling(logit_bias={9: 100})) == [9] * 8


# --- B33: limits are checked before anything is allocated ---


@pytest.mark.parametrize("num_prompt", [64, 1_000_000])
def test_a_long_prompt_is_refused_with_both_numbers(engine: Engine, num_prompt: int) -> None:
    with pytest.raises(ContextFullError) as caught:
        engine.submit(Request(prompt_ids=[5] * num_prompt))
    assert str(num_prompt) in str(caught.value)
    assert "64" in str(caught.value)
    engine.scheduler.pool.check([])


@pytest.mark.parametrize("trace_top", [300, 100_000, 1 << 20])
def test_more_candidates_than_tokens_are_all_tokens(engine: Engine, trace_top: int) -> None:
    piece = next(engine.stream(Request(prompt_ids=PROMPT, max_tokens=1, trace_top=trace_top)))
    assert piece.decision is not None
    assert sorted(c.token_id for c in piece.decision.top) == list(range(300))
    assert sum(c.raw_p for c in piece.decision.top) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("trace_top", [-1, (1 << 20) + 1, 10**12, 1.5, "5"])
def test_a_number_of_candidates_out_of_range_is_refused(engine: Engine, trace_top: Any) -> None:
    refused(engine, "trace_top", lambda: tokens(engine, trace_top=trace_top))


# --- B13: empty stop strings ---


@pytest.mark.parametrize("stop", ["", [""], ("", "x"), ("x", ""), 5, (None,)])
def test_an_empty_stop_string_is_refused(engine: Engine, stop: Any) -> None:
    refused(engine, "stop", lambda: tokens(engine, stop=stop))


@pytest.mark.parametrize("stop", [None, (), []])
def test_no_stop_string_is_none(engine: Engine, stop: Any) -> None:
    assert len(tokens(engine, stop=stop)) == 8
