"""Stages and reasons: known values for the logits 2, 1, 0, -1 (GLASS.md, "Formulas", D2, D3), hostile rows,
and the sum that must be 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sampling.test_choose import logits_of
from tokenglass.errors import ModelOutputError, ParameterError
from tokenglass.sampling import Choice, Draw, Sampling
from tokenglass.sampling.choose import choose_row
from tokenglass.trace import Decision

KNOWN = [2.0, 1.0, 0.0, -1.0]


def decide(
    z: list[float], *, ids: Any = (), num_prompt: int = 0, trace_top: int = 4, **values: Any
) -> Decision:
    choice = choose_row(logits_of(z), 0, Draw(Sampling(seed=5, **values), ids, num_prompt, trace_top))
    assert choice.decision is not None
    return choice.decision


def final(decision: Decision) -> dict[int, float]:
    return {c.token_id: c.p for c in decision.top if c.p > 0}


def test_raw_probabilities_and_entropy() -> None:
    decision = decide(KNOWN, temperature=0.5)
    assert [c.token_id for c in decision.top] == [0, 1, 2, 3]
    assert [c.raw_p for c in decision.top] == pytest.approx(
        [0.643914, 0.236883, 0.087144, 0.032059], abs=1e-6
    )
    assert decision.entropy == pytest.approx(0.947537, abs=1e-6)
    assert decision.entropy / math.log(2) == pytest.approx(1.367007, abs=1e-6)
    assert [c.p for c in decision.top] == pytest.approx([0.8650, 0.1171, 0.0158, 0.0021], abs=1e-4)


def test_temperature_two() -> None:
    assert list(final(decide(KNOWN, temperature=2.0)).values()) == pytest.approx(
        [0.455054, 0.276004, 0.167405, 0.101536], abs=1e-6
    )


@pytest.mark.parametrize(
    ("values", "survivors"),
    [
        ({"top_p": 0.9}, {0, 1, 2}),
        ({"top_p": 0.88}, {0, 1}),
        ({"min_p": 0.1}, {0, 1, 2}),
        ({"min_p": 0.1, "temperature": 2.0}, {0, 1, 2, 3}),
        ({"top_k": 2}, {0, 1}),
        ({"top_k": 4}, {0, 1, 2, 3}),
        ({"top_k": 5}, {0, 1, 2, 3}),
        ({"top_p": 1}, {0, 1, 2, 3}),
        ({"top_p": 1e-9}, {0}),
        ({"typical_p": 0.2}, {1}),
    ],
)
def test_which_tokens_survive(values: dict[str, Any], survivors: set[int]) -> None:
    assert set(final(decide(KNOWN, **{"temperature": 1.0, **values}))) == survivors


def test_a_stage_says_what_it_left() -> None:
    decision = decide(KNOWN, temperature=1.0, top_k=3, top_p=0.9)
    assert [(s.name, s.setting, s.survivors) for s in decision.stages] == [("top_k", 3, 3), ("top_p", 0.9, 2)]
    assert [s.mass for s in decision.stages] == pytest.approx([0.967941, 0.909970], abs=1e-5)


def test_cutting_to_two_renormalises_what_temperature_gave() -> None:
    assert list(final(decide(KNOWN, temperature=1.0, top_k=2)).values()) == pytest.approx(
        [0.7311, 0.2689], abs=1e-4
    )


@pytest.mark.parametrize(
    ("values", "banned_or_forced"),
    [({"logit_bias": {0: -100}}, 1), ({"logit_bias": {3: 100}}, 3), ({"logit_bias": {2: 2.5}}, 2)],
)
def test_bias_bans_forces_and_shifts(values: dict[str, Any], banned_or_forced: int) -> None:
    assert decide(KNOWN, **values).token_id == banned_or_forced
    assert decide([500.0, 0, 0, -500.0], logit_bias={3: 100}).token_id == 3
    drawn = {
        choose_row(
            logits_of(KNOWN), 0, Draw(Sampling(temperature=1, seed=1, logit_bias={0: -100}), range(i))
        ).token_id
        for i in range(200)
    }
    assert drawn == {1, 2, 3}


def test_a_bias_outside_the_vocabulary_is_refused() -> None:
    with pytest.raises(ParameterError, match="logit_bias"):
        decide(KNOWN, logit_bias={4: 1.0})


@pytest.mark.parametrize("bias", [{-1: 1}, {"5": 1}, {5: 101}, {5: float("nan")}, {5: "1"}, [5], {True: 1}])
def test_a_bias_that_makes_no_sense_is_refused(bias: Any) -> None:
    with pytest.raises(ParameterError, match="logit_bias"):
        Sampling(logit_bias=bias)


def test_penalties_see_the_tokens_they_should() -> None:
    prompt_and_answer = [0, 0, 1, 2, 2]  # the prompt is 0 0 1
    repetition = decide(KNOWN, ids=prompt_and_answer, num_prompt=3, repetition_penalty=4.0, temperature=1.0)
    expected = np.array([0.5, 0.25, 0.0, -1.0])  # 3 has not been seen; 0 / 4 stays 0
    assert list(final(repetition).values()) == pytest.approx(
        (np.exp(expected) / np.exp(expected).sum()).tolist()
    )
    both = decide(
        KNOWN,
        ids=prompt_and_answer,
        num_prompt=3,
        presence_penalty=0.5,
        frequency_penalty=0.25,
        temperature=1.0,
    )
    expected = np.array([2.0, 1.0, 0.0 - 0.5 - 2 * 0.25, -1.0])
    assert list(final(both).values()) == pytest.approx((np.exp(expected) / np.exp(expected).sum()).tolist())
    negative = decide([-1.0, -2.0], ids=[0], repetition_penalty=2.0)
    assert negative.token_id == 0  # -1 * 2 = -2: a tie, the lowest id


def test_reasons_change_no_choice_and_add_up() -> None:
    z = np.random.default_rng(2).normal(0, 3, 500).tolist()
    for position in range(60):
        for sampling in (
            Sampling(seed=9, temperature=1.2),
            Sampling(seed=9, temperature=0.7, top_p=0.8, min_p=0.01),
            Sampling(seed=9),
        ):
            silent = choose_row(logits_of(z), 0, Draw(sampling, range(position)))
            told = choose_row(logits_of(z), 0, Draw(sampling, range(position), 0, 10))
            assert silent == Choice(told.token_id)
            decision = told.decision
            assert decision is not None
            assert decision.token_id in [c.token_id for c in decision.top]
            assert sum(c.p for c in decision.top) + decision.rest_p == pytest.approx(1, abs=1e-6)
            assert sum(c.raw_p for c in decision.top) + decision.rest_raw_p == pytest.approx(1, abs=1e-6)
            assert decision.rank == 1 + int(np.sum(np.array(z) > z[decision.token_id]))


def test_where_nobody_asks_no_reasons_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: object) -> None:
        raise AssertionError("reasons were made for nobody")

    monkeypatch.setattr("tokenglass.kernels.Logits.survey", asked)
    monkeypatch.setattr("tokenglass.sampling.stages.Stage", asked)
    sampling = Sampling(seed=9, temperature=0.7, top_k=3, top_p=0.8, min_p=0.01, typical_p=0.9)
    for silent in (Sampling(), sampling):
        assert choose_row(logits_of(KNOWN), 0, Draw(silent, range(3))).decision is None
        with pytest.raises(AssertionError):
            choose_row(logits_of(KNOWN), 0, Draw(silent, range(3), trace_top=0))


def test_greedy_shows_the_raw_distribution() -> None:
    decision = decide(KNOWN)
    assert decision.stages == ()
    assert (decision.rank, decision.logp) == (1, 0.0)
    assert decision.top[0].raw_p == pytest.approx(0.643914, abs=1e-6)


@pytest.mark.parametrize("values", [{}, {"temperature": 1.0}, {"temperature": 1.0, "top_p": 0.5}])
@pytest.mark.parametrize("bad", [[math.nan] * 3, [-math.inf] * 3, [math.inf, 0.0, 0.0]])
def test_a_row_without_numbers_is_an_error(values: dict[str, Any], bad: list[float]) -> None:
    choice = choose_row(logits_of(bad), 0, Draw(Sampling(seed=5, **values), ()))
    assert isinstance(choice.error, ModelOutputError)


@pytest.mark.parametrize("values", [{"temperature": 1.0}, {"temperature": 1.0, "top_k": 2}, {}])
def test_one_nan_is_never_chosen(values: dict[str, Any]) -> None:
    drawn = {decide([math.nan, 1.0, 1.0], ids=range(i), **values).token_id for i in range(50)}
    assert drawn <= {1, 2}


@pytest.mark.parametrize("name", ["top_k", "top_p", "min_p", "typical_p"])
@pytest.mark.parametrize("off", [None, -1])
def test_off_values_leave_a_stage_out(name: str, off: Any) -> None:
    assert decide(KNOWN, temperature=1.0, **{name: off}).stages == ()


@settings(max_examples=80, deadline=None)
@given(
    z=st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=120),
    values=st.fixed_dictionaries(
        {},
        optional={
            "temperature": st.floats(0.05, 5),
            "top_k": st.integers(0, 130),
            "top_p": st.floats(0, 1),
            "min_p": st.floats(0, 1),
            "typical_p": st.floats(0.01, 1),
            "repetition_penalty": st.floats(0.1, 3),
            "frequency_penalty": st.floats(-2, 2),
        },
    ),
    position=st.integers(0, 40),
)
def test_any_combination_draws_a_survivor_and_adds_up(
    z: list[float], values: dict[str, Any], position: int
) -> None:
    ids = [i % len(z) for i in range(position)]
    decision = decide(z, ids=ids, num_prompt=position // 2, trace_top=5, **values)
    assert math.isfinite(decision.logp)
    assert sum(c.p for c in decision.top) + decision.rest_p == pytest.approx(1, abs=1e-6)
    assert all(0 < stage.mass <= 1 + 1e-6 and stage.survivors >= 1 for stage in decision.stages)
