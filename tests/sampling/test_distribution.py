"""The distribution has the known numbers of GLASS.md ("Formulas", D2), and is what draws are made from."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.sampling.oracle import expected_distribution
from tokenglass import kernels
from tokenglass.errors import ModelOutputError
from tokenglass.sampling import Draw, Sampling
from tokenglass.sampling.choose import choose_row
from tokenglass.sampling.distribution import Distribution, distribution


def scores(*values: float) -> kernels.Logits:
    buffer = kernels.Rows(1, len(values))
    buffer.fill(np.array([values], np.float32))
    return kernels.Logits(kernels.cpu(1), buffer, len(values))


LOGITS = (2.0, 1.0, 0.0, -1.0)


def of(*values: float, **settings: float) -> Distribution:
    return distribution(scores(*values), 0, Draw(Sampling(seed=0, **settings), [0]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("temperature", "p", "entropy", "bits"),
    [
        (1.0, (0.643914, 0.236883, 0.087144, 0.032059), 0.947537, 1.367007),
        (2.0, (0.455054, 0.276004, 0.167405, 0.101536), 1.245050, 1.245050 / math.log(2)),
        (0.5, (0.8650, 0.1171, 0.0158, 0.0021), None, None),
        (0.0, (1, 0, 0, 0), 0.0, 0.0),
    ],
)
def test_golden_values(
    temperature: float, p: tuple[float, ...], entropy: float | None, bits: float | None
) -> None:
    found = of(*LOGITS, temperature=temperature)
    assert found.p == pytest.approx(p, abs=6e-5 if entropy is None else 1e-6)
    if entropy is not None:
        assert found.entropy == pytest.approx(entropy, abs=2e-6)
        assert found.entropy_bits == pytest.approx(bits, abs=2e-6)


@pytest.mark.parametrize(
    ("settings", "kept"),
    [({"top_p": 0.9}, 3), ({"top_p": 0.88}, 2), ({"min_p": 0.1}, 3), ({"top_k": 2}, 2), ({"top_p": 0.0}, 1)],
)
def test_cuts_leave_the_known_survivors(settings: dict[str, float], kept: int) -> None:
    found = of(*LOGITS, temperature=1.0, **settings)
    assert found.survivors == kept
    assert list(found.p > 0) == [i < kept for i in range(4)]
    assert found.p.sum() == pytest.approx(1, abs=1e-12)


def test_temperature_acts_before_min_p() -> None:
    assert of(*LOGITS, temperature=2.0, min_p=0.1).survivors == 4


def test_two_best_after_a_cut_share_by_their_own_odds() -> None:
    assert of(*LOGITS, temperature=1.0, top_k=2).p[:2] == pytest.approx([0.7311, 0.2689], abs=1e-4)


def test_numbers_are_those_in_the_reasons_of_a_draw() -> None:
    rng = np.random.default_rng(1)
    row = scores(*rng.normal(0, 3, 500))
    draw = Draw(
        Sampling(temperature=0.8, top_k=60, top_p=0.9, typical_p=0.9, repetition_penalty=1.2, seed=3),
        [1, 2, 3],
        trace_top=500,
    )
    decision = choose_row(row, 0, draw).decision
    assert decision is not None
    found = distribution(row, 0, draw)
    assert found.stages == decision.stages
    for candidate in decision.top:
        assert found.p[candidate.token_id] == pytest.approx(candidate.p, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_any_settings_give_the_oracles_distribution(seed: int) -> None:
    """A vocabulary longer than what is sorted at first, and each setting in about half of the cases."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, rng.choice([0.5, 3.0, 8.0]), 1500).astype(np.float32)
    ids = [int(i) for i in rng.integers(0, 1500, 60)] * 2
    values = {
        "temperature": float(rng.uniform(0.3, 3)),
        "top_k": int(rng.integers(2, 1500)),
        "top_p": float(rng.uniform(0.05, 1)),
        "min_p": float(rng.uniform(0, 0.3)),
        "typical_p": float(rng.uniform(0.05, 1)),
        "repetition_penalty": float(rng.uniform(0.5, 2)),
        "presence_penalty": float(rng.uniform(-2, 2)),
        "frequency_penalty": float(rng.uniform(-2, 2)),
        "logit_bias": {int(i): float(rng.uniform(-100, 10)) for i in rng.integers(0, 1500, 20)},
    }
    chosen = {name: value for name, value in values.items() if name == "temperature" or rng.random() < 0.5}
    sampling = Sampling(seed=0, **chosen)  # type: ignore[arg-type]
    found = distribution(scores(*z.tolist()), 0, Draw(sampling, ids, 40)).p
    expected = expected_distribution(z.tolist(), sampling, ids[:40], ids[40:])
    assert found == pytest.approx(expected, abs=2e-6, rel=1e-4)


def test_nothing_to_choose_is_an_error() -> None:
    with pytest.raises(ModelOutputError):
        of(math.nan, math.nan)
