"""The numbers behind a choice, made only when somebody listens. They change nothing about it."""

from __future__ import annotations

import numpy as np

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
    raw = weights.astype(np.float64) / total
    entropy = float(np.log(total) - weights @ (z - z.max()).astype(np.float64).clip(-1e30) / total)
    final = {token_id: 1.0}
    if candidates is not None:
        ids = candidates.ids(candidates.count)
        final = dict(
            zip(
                ids.tolist(),
                (candidates.weights[ids].astype(np.float64) / candidates.mass).tolist(),
                strict=True,
            )
        )
    shown = logits.top(row, num_shown).tolist() if num_shown else []
    if token_id not in shown:
        shown.append(token_id)
    top = tuple(Candidate(i, float(z[i]), float(raw[i]), final.get(i, 0.0)) for i in shown)
    better = np.count_nonzero(z > z[token_id]) + np.count_nonzero(z[:token_id] == z[token_id])
    return Decision(
        token_id=token_id,
        rank=int(better) + 1,
        raw_logp=float(z[token_id] - z.max()) - float(np.log(total)),
        logp=float(np.log(final[token_id])),
        entropy=entropy,
        stages=tuple(stages),
        top=top,
        rest_raw_p=max(0.0, 1.0 - sum(c.raw_p for c in top)),
        rest_p=max(0.0, 1.0 - sum(c.p for c in top)),
    )
