"""One token per row of logits.

The draw at a position is a pure function of (seed, position), so a run can be replayed and neighbours change
nothing. Tokens are lined up from the most likely down (equals by id) and the draw's point on that line
decides: a likely token is also an early one, so only the head of the vocabulary is ever sorted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tokenglass.sampling.params import Sampling

_MASK = (1 << 64) - 1


class Scores(Protocol):
    """The logits of one step, [rows, vocab]; `kernels.Logits` is the one the engine uses."""

    @property
    def vocab(self) -> int: ...
    def argmax(self, row: int) -> int: ...
    def top(self, row: int, num: int) -> NDArray[np.int32]: ...
    def weights(self, row: int, temperature: float) -> tuple[NDArray[np.float32], float]: ...


@dataclass(frozen=True)
class Draw:
    """What one row asks for: how to choose the token that will stand at `position`."""

    sampling: Sampling
    position: int


@dataclass(frozen=True)
class Choice:
    """The token a row got."""

    token_id: int


def choose(logits: Scores, draws: Sequence[Draw]) -> list[Choice]:
    """One choice per row of logits; draws[i] belongs to row i."""
    return [Choice(choose_row(logits, row, draw)) for row, draw in enumerate(draws)]


def choose_row(logits: Scores, row: int, draw: Draw) -> int:
    """The token id that `draw` gives for this row."""
    sampling = draw.sampling
    if sampling.is_greedy:
        return logits.argmax(row)
    assert sampling.seed is not None, "Sampling draws a seed when it gets none"
    point = uniform(sampling.seed, draw.position)
    weights, total = logits.weights(row, sampling.temperature)
    if sampling.top_k > 0:
        ids = logits.top(row, sampling.top_k)
        mass = np.cumsum(weights[ids], dtype=np.float64)
        total = float(mass[-1])
    else:
        needed = (sampling.top_p if sampling.top_p < 1.0 else point) * total
        ids, mass = _head(logits, row, weights, needed)
    if sampling.top_p < 1.0:
        kept = int(np.searchsorted(mass, sampling.top_p * total)) + 1  # the token that reaches top_p stays in
        ids, mass = ids[:kept], mass[:kept]
        total = float(mass[-1])
    chosen = int(np.searchsorted(mass, point * total, side="right"))
    return int(ids[min(chosen, len(ids) - 1)])


def _head(
    logits: Scores, row: int, weights: NDArray[np.float32], needed: float
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The likeliest tokens, best first, until their running mass exceeds `needed`: (ids, running mass)."""
    num = 64
    while True:
        ids = logits.top(row, num)
        mass = np.cumsum(weights[ids], dtype=np.float64)
        if mass[-1] > needed or len(ids) >= logits.vocab or len(ids) < num:
            return ids, mass
        num *= 8


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) with 53 random bits, from two rounds of the SplitMix64 mixer
    (https://doi.org/10.1145/2714064.2660195).
    """
    return (_mix(_mix(seed + 0x9E3779B97F4A7C15) + position * 0xD1342543DE82EF95) >> 11) * 2.0**-53


def _mix(z: int) -> int:
    z &= _MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _MASK
    return z ^ (z >> 31)
