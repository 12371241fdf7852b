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
    trace_top: int,
    is_edited: bool,
) -> Decision:
    """The decision for a token that has been chosen; `candidates`: what survived, None where it was the best
    token.

    logits: the model's own, before bias and penalties; is_edited: there were some, so that the candidates
    have an order of their own. The shown tokens are the `trace_top` best of `logits` and the chosen one.
    """
    largest, total, below, better, shown, scores = logits.survey(row, token_id, trace_top)
    log_total = math.log(total)
    raw = [math.exp(score - largest) / total for score in scores]
    if candidates is None:
        final = [float(i == token_id) for i in shown]
    else:
        final = candidates.probabilities(shown, token_id, is_ordered=not is_edited)
    chosen = shown.index(token_id)
    return Decision(
        token_id,
        better + 1,  # its rank
        scores[chosen] - largest - log_total,
        math.log(final[chosen]),
        log_total - below / total,  # the entropy
        tuple(stages),
        tuple(map(Candidate, shown, scores, raw, final)),
        max(0.0, 1.0 - sum(raw)),
        max(0.0, 1.0 - sum(final)),
    )
