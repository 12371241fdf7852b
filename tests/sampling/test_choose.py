"""The choice: what may be drawn, from how far down, and that nothing but seed and position decides it.

That draws follow the distribution is in `test_chi_square.py`.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tokenglass import kernels
from tokenglass.sampling import Draw, Sampling, choose
from tokenglass.sampling.choose import choose_row, uniform

CPU = kernels.cpu(1)


def logits_of(*rows: list[float]) -> kernels.Logits:
    values = np.array(rows, np.float32)
    buffer = kernels.Rows(len(rows), values.shape[1])
    buffer.fill(values)
    return kernels.Logits(CPU, buffer, values.shape[1])


def draw_at(logits: kernels.Logits, sampling: Sampling, position: int) -> int:
    return choose_row(logits, 0, Draw(sampling, range(position))).token_id


def test_a_large_vocabulary_is_drawn_from_to_its_end() -> None:
    logits = logits_of([0.0] * 5000)
    drawn = {draw_at(logits, Sampling(temperature=1.0, seed=1), i) for i in range(3000)}
    assert len(drawn) > 2000
    assert max(drawn) > 4900


def test_top_p_keeps_the_token_that_reaches_it() -> None:
    half_and_half = logits_of([0.0, 0.0])
    for position in range(50):
        assert draw_at(half_and_half, Sampling(temperature=1, top_p=0.5, seed=0), position) == 0


def test_a_draw_depends_on_seed_and_position_alone() -> None:
    z = np.random.default_rng(1).normal(0, 3, 100).tolist()
    draw = Draw(Sampling(temperature=1.0, seed=42), range(17))
    other = Draw(Sampling(temperature=1.0, seed=7), range(3))
    alone = choose(logits_of(z), [draw])[0]
    assert choose(logits_of(z[::-1], z), [other, draw])[1] == alone


def test_uniform_numbers_are_uniform_and_uncorrelated() -> None:
    grid = np.array([[uniform(seed, position) for position in range(200)] for seed in range(200)])
    assert grid.min() >= 0
    assert grid.max() < 1
    counts, _ = np.histogram(grid, bins=50, range=(0, 1))
    assert abs(counts - 800).max() < 160
    assert abs(np.corrcoef(grid[:, :-1].ravel(), grid[:, 1:].ravel())[0, 1]) < 0.02
    assert abs(np.corrcoef(grid[:-1].ravel(), grid[1:].ravel())[0, 1]) < 0.02


def test_ties_go_to_the_lowest_id() -> None:
    assert choose(logits_of([1.0, 5.0, 5.0]), [Draw(Sampling(), ())])[0].token_id == 1


@settings(max_examples=60, deadline=None)
@given(
    z=st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=200),
    temperature=st.floats(1e-4, 50),
    top_k=st.integers(-1, 300),
    top_p=st.floats(0, 1),
    position=st.integers(0, 1 << 20),
)
def test_any_valid_setting_draws_a_token_that_survives_its_cuts(
    z: list[float], temperature: float, top_k: int, top_p: float, position: int
) -> None:
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=3)
    token = draw_at(logits_of(z), sampling, position)
    rank = sum(1 for i, x in enumerate(z) if (-x, i) < (-z[token], token))
    assert 0 <= token < len(z)
    if top_k > 0:
        assert rank < top_k
    if sampling.is_greedy:
        assert rank == 0


def test_reasons_look_no_further_down_the_vocabulary_than_the_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorting 50,000 tokens to show five would cost more than a step of a small model."""
    asked: list[int] = []
    top = kernels.Logits.top

    def counted(logits: kernels.Logits, row: int, num: int) -> NDArray[np.int32]:
        asked.append(num)
        return top(logits, row, num)

    logits = logits_of(np.random.default_rng(2).normal(0, 4, 50_000).tolist())
    sampling = Sampling(temperature=0.7, seed=1)
    plain = choose_row(logits, 0, Draw(sampling, range(9)))
    monkeypatch.setattr(kernels.Logits, "top", counted)
    told = choose_row(logits, 0, Draw(sampling, range(9), trace_top=5))
    assert told.token_id == plain.token_id
    assert max(asked) <= 64
    assert told.decision is not None
    p = np.exp(logits.numpy()[0].astype(np.float64) / 0.7)
    shown = [c.token_id for c in told.decision.top]
    assert [c.p for c in told.decision.top] == pytest.approx((p[shown] / p.sum()).tolist(), rel=1e-5)
