"""The numbers behind a choice, made only when somebody listens. They change nothing about it."""

from __future__ import annotations

import math

from tokenglass.sampling.candidates import Candidates, Scores
from tokenglass.trace import Candidate, Decision, Stage


def reasons_of(
    logits: Scores,
    row: int,
    token_id: int,
    candidates: Candidates | None,
    stages: list[Stage],
    num_shown: int,
    is_edited: bool,
) -> Decision:
    """The decision for a token that has been chosen; `candidates`: what survived, None where it was the best
    token.

    logits: the model's own, before bias and penalties; is_edited: there were some. The shown tokens are the
    `num_shown` best of them and the chosen one.
    """
    largest, total, below, better = logits.survey(row, token_id)
    log_total = math.log(total)
    if candidates is None or is_edited or candidates.is_picked:
        shown = logits.top(row, num_shown).tolist() if num_shown else []
    else:
        shown = candidates.best(num_shown)
    if token_id not in shown:
        shown.append(token_id)
    scores = logits.numpy()[row][shown].tolist()
    raw = [math.exp(score - largest) / total for score in scores]
    final = [float(i == token_id) for i in shown] if candidates is None else candidates.probabilities(shown)
    chosen = shown.index(token_id)
    return Decision(
        token_id=token_id,
        rank=better + 1,
        raw_logp=scores[chosen] - largest - log_total,
        logp=math.log(final[chosen]),
        entropy=log_total - below / total,
        stages=tuple(stages),
        top=tuple(map(Candidate, shown, scores, raw, final)),
        rest_raw_p=max(0.0, 1.0 - sum(raw)),
        rest_p=max(0.0, 1.0 - sum(final)),
    )
