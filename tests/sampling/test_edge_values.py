"""ENGINE_CASES part C on a row of logits: tiny temperatures (B25), edges of the cuts (B27), bias (B28); and
the answers of GLASS.md ("Formulas", D2, D3) that are not in `test_stages.py` and `test_distribution.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.sampling.oracle import expected_distribution
from tests.sampling.test_choose import logits_of
from tokenglass.errors import ParameterError
from tokenglass.sampling import Draw, Sampling
from tokenglass.sampling.choose import choose_row
from tokenglass.sampling.distribution import distribution
from tokenglass.trace import Decision

KNOWN = [2.0, 1.0, 0.0, -1.0]
TWO_PEAKS = [-3.0, 5.0, -3.0, 4.9, -4.0, -3.5]  # tokens 1 and 3 have .52 and .47


def drawn(z: list[float], num: int = 1000, **values: Any) -> set[int]:
    logits = logits_of(z)
    return {choose_row(logits, 0, Draw(Sampling(seed=seed, **values), [0])).token_id for seed in range(num)}


def decide(z: list[float], *, trace_top: int = 4, seed: int = 1, **values: Any) -> Decision:
    decision = choose_row(logits_of(z), 0, Draw(Sampling(seed=seed, **values), [0], 0, trace_top)).decision
    assert decision is not None
    return decision


# --- B25: tiny temperatures ---

HUGE = [59_999.0, 60_000.0, -60_000.0, 59_998.0]


@pytest.mark.parametrize(
    "values",
    [
        {"temperature": 1e-4},
        {"temperature": 1e-5},
        {"temperature": 1e-10},
        {"temperature": 5e-324},
        {"temperature": 0},
        {"temperature": 0, "top_p": 0.1},
        {"temperature": 1e-4, "top_p": 0.1, "typical_p": 0.9},
    ],
)
def test_a_tiny_temperature_is_the_best_token(values: dict[str, Any]) -> None:
    assert drawn(HUGE, 50, **values) == {1}
    decision = decide(HUGE, **values)
    assert (decision.token_id, decision.logp) == (1, 0.0)
    assert all(math.isfinite(c.p) and math.isfinite(c.raw_p) for c in decision.top)
    assert distribution(logits_of(HUGE), 0, Draw(Sampling(seed=1, **values), [0])).p.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("temperature", [1e-4, 1e-3, 0.01, 100.0])
def test_huge_logits_keep_their_distribution(temperature: float) -> None:
    z = [60_000.0, 60_000.0 - 1 / 128, -60_000.0]  # a difference that float32 still knows
    sampling = Sampling(temperature=temperature, seed=1)
    found = distribution(logits_of(z), 0, Draw(sampling, [0])).p
    assert found == pytest.approx(expected_distribution(z, sampling), abs=1e-6)


# --- B27: edges of the cuts ---


@pytest.mark.parametrize(
    "values", [{"top_p": 0}, {"top_p": 0.0}, {"top_p": 1e-9}, {"top_k": 1}, {"min_p": 1}]
)
def test_the_narrowest_cut_is_the_best_token_and_never_all(values: dict[str, Any]) -> None:
    assert drawn(TWO_PEAKS, temperature=1.0, **values) == {1}


@pytest.mark.parametrize(
    "values",
    [
        *({"top_p": off} for off in (1, 1.0, -1, None)),
        *({"top_k": off} for off in (0, -1, None, 6, 7, 1 << 31)),
        *({"min_p": off} for off in (0, 0.0, -1, None)),
        *({"typical_p": off} for off in (1, 1.0, -1, None)),
        *({name: None} for name in ("repetition_penalty", "presence_penalty", "frequency_penalty")),
        {"repetition_penalty": 1.0, "presence_penalty": 0, "frequency_penalty": 0.0, "logit_bias": None},
    ],
)
def test_an_off_value_filters_nothing(values: dict[str, Any]) -> None:
    assert drawn(TWO_PEAKS, temperature=4.0, **values) == set(range(6))
    logits = logits_of(TWO_PEAKS)
    with_off = distribution(logits, 0, Draw(Sampling(temperature=1.0, seed=1, **values), [0])).p
    without = distribution(logits, 0, Draw(Sampling(temperature=1.0, seed=1), [0])).p
    assert with_off.tolist() == without.tolist()


@pytest.mark.parametrize("values", [{"top_p": 0.9}, {"top_k": 2}, {"min_p": 0.5}, {"typical_p": 0.9}])
def test_a_cut_between_keeps_both_peaks(values: dict[str, Any]) -> None:
    assert drawn(TWO_PEAKS, temperature=1.0, **values) == {1, 3}


@pytest.mark.parametrize("name", ["top_p", "min_p", "typical_p", "temperature", "repetition_penalty"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -2, -0.5, 1e9, "0.5", [], True])
def test_what_is_no_number_of_the_range_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        Sampling(**{name: value})
    assert caught.value.name == name


def test_minus_one_is_off_for_cuts_only() -> None:
    with pytest.raises(ParameterError, match="repetition_penalty"):
        Sampling(repetition_penalty=-1)
    assert Sampling(presence_penalty=-1).presence_penalty == -1
    assert Sampling(frequency_penalty=-1).frequency_penalty == -1


# --- B28: bias ---


def test_a_ban_holds_however_high_the_favourite_is() -> None:
    z = [1e4, 0.0, 0.0, -5.0]
    assert drawn(z, temperature=1.0, logit_bias={0: -100}) == {1, 2, 3}
    assert drawn(z, 1, logit_bias={0: -100}) == {1}
    assert drawn(z, 200, temperature=1.0, logit_bias={3: 100}) == {3}
    assert decide(z, logit_bias={0: -100}).top[0].raw_p == 1.0  # the model's own view is not touched


# --- GLASS.md, "Formulas" ---


def test_entropies_surprisal_and_varentropy() -> None:
    p = distribution(logits_of(KNOWN), 0, Draw(Sampling(temperature=1.0, seed=0), [0])).p
    surprisal = -np.log(p)
    entropy = float(p @ surprisal)
    assert float(p @ (surprisal - entropy) ** 2) == pytest.approx(0.616586, abs=1e-6)
    for token, seed in {
        choose_row(logits_of(KNOWN), 0, Draw(Sampling(temperature=1.0, seed=s), [0])).token_id: s
        for s in range(200)
    }.items():
        decision = decide(KNOWN, temperature=1.0, seed=seed)
        assert decision.token_id == token
        assert decision.surprisal_bits == pytest.approx(-math.log2(p[token]), abs=1e-6)
        assert decision.entropy == pytest.approx(entropy, abs=1e-6)


def test_a_stage_says_survivors_and_kept_mass() -> None:
    [stage] = decide(KNOWN, temperature=1.0, top_p=0.88).stages
    assert stage.survivors == 2
    assert stage.mass == pytest.approx(0.880797, abs=1e-6)
    [stage] = decide(KNOWN, temperature=1.0, top_p=0.9).stages
    assert stage.survivors == 3
    assert stage.mass == pytest.approx(0.967941, abs=1e-6)


def test_raw_probabilities_are_those_before_every_setting() -> None:
    """D2."""
    raw = [0.643914, 0.236883, 0.087144, 0.032059]
    for values in ({}, {"temperature": 0.5}, {"temperature": 2.0, "top_k": 1}, {"logit_bias": {0: -100}}):
        decision = decide(KNOWN, **values)
        assert [c.raw_p for c in decision.top] == pytest.approx(raw, abs=1e-6)
    assert [c.p for c in decide(KNOWN, temperature=0.5).top] == pytest.approx(
        [0.864955, 0.117059, 0.015842, 0.002144], abs=1e-6
    )


def test_a_token_of_rank_50_is_shown_beside_the_best_five() -> None:
    """D3."""
    z = np.linspace(1, 0, 80).tolist()
    decision = next(
        d for seed in range(2000) if (d := decide(z, trace_top=5, seed=seed, temperature=1.0)).rank == 50
    )
    assert [c.token_id for c in decision.top] == [0, 1, 2, 3, 4, 49]
    assert sum(c.p for c in decision.top) + decision.rest_p == pytest.approx(1, abs=1e-6)
    assert sum(c.raw_p for c in decision.top) + decision.rest_raw_p == pytest.approx(1, abs=1e-6)
    assert decision.rest_p > 0.5
    greedy = decide(z[::-1], trace_top=3)
    assert [c.token_id for c in greedy.top] == [79, 78, 77]  # not the first ids of the vocabulary
    assert greedy.top[0].raw_p == decision.top[0].raw_p
