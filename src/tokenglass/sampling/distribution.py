"""The whole distribution of a next token under given settings: every token's probability, not a choice.

The same stages as `choose.py`, and the same numbers: what comes out here is what a draw is made from. Exact
for any temperature from one forward pass, since the model's logits do not depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokenglass.errors import ModelOutputError
from tokenglass.sampling.candidates import Candidates, Scores
from tokenglass.sampling.choose import Draw
from tokenglass.sampling.stages import cut, edit
from tokenglass.trace import Stage


@dataclass(frozen=True, eq=False)
class Distribution:
    """p: float64 [vocab], sum 1, 0 for what a stage removed; stages: those that were on, in their order."""

    p: NDArray[np.float64]
    stages: tuple[Stage, ...]

    @property
    def entropy(self) -> float:
        """-sum(p ln p), in nats."""
        p = self.p[self.p > 0]
        return float(-(p @ np.log(p))) + 0.0  # no -0.0

    @property
    def entropy_bits(self) -> float:
        return self.entropy / float(np.log(2.0))

    @property
    def survivors(self) -> int:
        """How many tokens can come."""
        return int(np.count_nonzero(self.p))


def distribution(logits: Scores, row: int, draw: Draw) -> Distribution:
    """What `draw` would be drawn from: softmax([2, 1, 0, -1]) is .6439, .2369, .0871, .0321.

    Temperature 0 (and top_k 1, top_p 0) gives all to the best token. ModelOutputError: no finite logit.
    """
    sampling = draw.sampling
    scores, at = logits, row
    if sampling.has_edits:
        scores, at = logits.replaced(edit(logits.numpy()[row], sampling, draw.ids, draw.num_prompt)), 0
    best = scores.argmax(at)
    if best < 0:
        raise ModelOutputError(draw.position)
    p = np.zeros(logits.vocab, np.float64)
    stages: list[Stage] = []
    if sampling.is_greedy:
        p[best] = 1.0
        return Distribution(p, ())
    candidates = Candidates(scores, at, sampling.temperature)
    cut(candidates, sampling, stages)
    if candidates.count == logits.vocab:
        p[:] = candidates.weights
    else:
        ids = candidates.ids(candidates.count)
        p[ids] = candidates.weights[ids]
    return Distribution(p / p.sum(), tuple(stages))


def log_softmax(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    """ln softmax along the last axis, float64; NaN where a row's largest number is not finite."""
    z = logits.astype(np.float64)
    with np.errstate(invalid="ignore"):
        z -= z.max(axis=-1, keepdims=True)
    z -= np.log(np.exp(z).sum(axis=-1, keepdims=True))
    return z
