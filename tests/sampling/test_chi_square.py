"""Draws under every stage and the main combinations follow the oracle's whole distribution, by chi-square.

A second test takes each stage out of the oracle: the same draws must then be refused, else the first shows
nothing.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.sampling.oracle import expected_distribution
from tests.sampling.test_choose import logits_of
from tokenglass.sampling import Draw, Sampling
from tokenglass.sampling.choose import choose_row
from tokenglass.sampling.distribution import distribution
from tokenglass.sampling.params import OFF_VALUES

Z = np.random.default_rng(5).normal(0, 2, 24).astype(np.float32).tolist()
BEST = [int(i) for i in np.argsort(Z)[::-1]]
PROMPT, ANSWER = [BEST[0], BEST[3], BEST[20]], [BEST[1], BEST[2], BEST[1], BEST[1], BEST[4]]
NUM_POSITIONS = 25
EDITS: dict[str, Any] = {
    "logit_bias": {BEST[0]: -1.0, BEST[7]: 2.5, BEST[4]: -100},
    "repetition_penalty": 1.4,
    "presence_penalty": -0.8,
    "frequency_penalty": 0.4,
}
SETTINGS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "bias": {"logit_bias": {BEST[0]: -1.5, BEST[5]: 2.0, BEST[1]: -100}},
    "repetition": {"repetition_penalty": 1.6},
    "repetition below 1": {"repetition_penalty": 0.7},
    "presence": {"presence_penalty": 1.2},
    "frequency": {"frequency_penalty": 0.6},
    "negative penalties": {"presence_penalty": -0.7, "frequency_penalty": -0.4},
    "cold": {"temperature": 0.5},
    "hot": {"temperature": 2.0},
    "top-k": {"top_k": 5},
    "top-p": {"top_p": 0.8},
    "min-p": {"min_p": 0.1},
    "typical": {"typical_p": 0.5},
    "top-k, top-p": {"temperature": 1.5, "top_k": 6, "top_p": 0.8},
    "hot, min-p": {"temperature": 2.0, "min_p": 0.2},
    "penalties": {"repetition_penalty": 1.4, "presence_penalty": 0.8, "frequency_penalty": 0.3},
    "all": {**EDITS, "temperature": 1.6, "top_k": 10, "top_p": 0.8, "min_p": 0.1, "typical_p": 0.5},
    "all, min-p deciding": {
        **EDITS,
        "temperature": 1.6,
        "top_k": 14,
        "top_p": 0.94,
        "min_p": 0.2,
        "typical_p": 0.7,
    },
}


def sampling_of(name: str, seed: int) -> Sampling:
    return Sampling(**{"temperature": 1.0, **SETTINGS[name], "seed": seed})


@cache
def counts(name: str, num_draws: int) -> NDArray[np.float64]:
    """How often each token was drawn, over seeds and positions alike."""
    logits, found = logits_of(Z), np.zeros(len(Z))
    texts = [[PROMPT[0]] * i + PROMPT + ANSWER for i in range(NUM_POSITIONS)]
    for seed in range(num_draws // NUM_POSITIONS):
        sampling = sampling_of(name, seed)
        for i, ids in enumerate(texts):
            found[choose_row(logits, 0, Draw(sampling, ids, i + len(PROMPT))).token_id] += 1
    return found


def deviation(found: NDArray[np.float64], p: NDArray[np.float64]) -> float:
    """Chi-square as standard deviations of a normal distribution (Wilson and Hilferty); rare tokens are one
    bin. Infinite where a token came that cannot.
    """
    expected = p * found.sum()
    if found[expected == 0].any():
        return float("inf")
    rare = (expected > 0) & (expected < 5)
    bins = [*zip(found[expected >= 5], expected[expected >= 5], strict=True)]
    if expected[rare].sum() > 1:
        bins.append((found[rare].sum(), expected[rare].sum()))
    if len(bins) == 1:
        return 0.0  # there was nothing to choose
    chi_square, freedom = sum((a - b) ** 2 / b for a, b in bins), len(bins) - 1
    scale = 2 / (9 * freedom)
    return float(((chi_square / freedom) ** (1 / 3) - 1 + scale) / scale**0.5)


NUM_DRAWS = [3_000, pytest.param(50_000, marks=pytest.mark.slow)]


@pytest.mark.parametrize("num_draws", NUM_DRAWS)
@pytest.mark.parametrize("name", SETTINGS)
def test_draws_follow_the_distribution(name: str, num_draws: int) -> None:
    found = counts(name, num_draws)
    assert found.sum() == num_draws
    assert deviation(found, expected_distribution(Z, sampling_of(name, 0), PROMPT, ANSWER)) < 3.7


@pytest.mark.parametrize("name", SETTINGS)
def test_draws_under_a_setting_are_told_from_draws_without_it(name: str) -> None:
    found, sampling = counts(name, 3_000), sampling_of(name, 0)
    expected = expected_distribution(Z, sampling, PROMPT, ANSWER)
    for setting in SETTINGS[name]:
        off: Any = 1.0 if setting == "temperature" else OFF_VALUES[setting]
        without = expected_distribution(Z, replace(sampling, **{setting: off}), PROMPT, ANSWER)
        if not np.allclose(without, expected):  # a cut can be idle behind another one
            assert deviation(found, without) > 5, setting


@pytest.mark.parametrize("name", SETTINGS)
def test_distribution_is_the_oracles(name: str) -> None:
    sampling = sampling_of(name, 0)
    found = distribution(logits_of(Z), 0, Draw(sampling, PROMPT + ANSWER, len(PROMPT))).p
    assert found == pytest.approx(expected_distribution(Z, sampling, PROMPT, ANSWER), abs=1e-6)
    assert found.sum() == pytest.approx(1, abs=1e-6)
