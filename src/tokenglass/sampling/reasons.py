"""The numbers behind a choice, made only when somebody listens. They change nothing about it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tokenglass.sampling.candidates import Candidates, Scores
from tokenglass.trace import Candidate, Decision, Stage


def reasons_of(
    logits: Scores,
    row: int,
    token_id: int,
    candidates: Candidates | None,
    stages: list[Stage],
    num_shown: int,
) -> Decision:
    """The decision for a token that has been chosen; `candidates`: what survived, None where it was the best
    token.

    logits: the model's own, before bias and penalties. The shown tokens are the `num_shown` best of them and
    the chosen one.
    """
    z = logits.numpy()[row]
    weights, total = logits.weights(row, 1.0)
    shown = logits.top(row, num_shown).tolist() if num_shown else []
    if token_id not in shown:
        shown.append(token_id)
    raw = [float(weights[i]) / total for i in shown]
    final = {token_id: 1.0} if candidates is None else final_probabilities(candidates, shown)
    top = tuple(
        Candidate(i, float(z[i]), raw_p, final.get(i, 0.0)) for i, raw_p in zip(shown, raw, strict=True)
    )
    below = z - z.max()
    better = np.count_nonzero(z > z[token_id]) + np.count_nonzero(z[:token_id] == z[token_id])
    return Decision(
        token_id=token_id,
        rank=int(better) + 1,
        raw_logp=float(below[token_id]) - float(np.log(total)),
        logp=float(np.log(final[token_id])),
        entropy=float(np.log(total)) - expected_below(weights, below) / total,
        stages=tuple(stages),
        top=top,
        rest_raw_p=max(0.0, 1.0 - sum(c.raw_p for c in top)),
        rest_p=max(0.0, 1.0 - sum(c.p for c in top)),
    )


def final_probabilities(candidates: Candidates, shown: list[int]) -> dict[int, float]:
    """The probabilities that the draw was made from, of those among `shown` that survived.

    Looks only at these: sorting the vocabulary to show five tokens costs more than a step of a small model.
    """
    survivors = shown
    if candidates.count < len(candidates.weights):
        survivors = np.intersect1d(shown, candidates.ids(candidates.count)).tolist()
    return {i: float(candidates.weights[i]) / candidates.mass for i in survivors}


def expected_below(weights: NDArray[np.float32], below: NDArray[np.float32]) -> float:
    """The sum of weight times logit below the best, both float32 [vocab], without a thread of BLAS."""
    products = np.maximum(below, np.float32(-1e30))  # -inf has weight 0, and 0 times -inf is no number
    products *= weights
    return float(products.sum(dtype=np.float64))
