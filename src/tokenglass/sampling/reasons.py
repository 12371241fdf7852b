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
) -> Decision:
    """The decision for a token that has been chosen; `candidates`: what survived, None where it was the best
    token.

    logits: the model's own, before bias and penalties. The shown tokens are the `num_shown` best of them and
    the chosen one.
    """
    z = logits.numpy()[row]
    largest, total, below, better = logits.survey(row, token_id)
    log_total = math.log(total)
    shown = logits.top(row, num_shown).tolist() if num_shown else []
    if token_id not in shown:
        shown.append(token_id)
    scores = [float(z[i]) for i in shown]
    raw = [math.exp(score - largest) / total for score in scores]
    final = {token_id: 1.0} if candidates is None else final_probabilities(candidates, shown)
    probabilities = [final.get(i, 0.0) for i in shown]
    return Decision(
        token_id=token_id,
        rank=better + 1,
        raw_logp=float(z[token_id]) - largest - log_total,
        logp=math.log(final[token_id]),
        entropy=log_total - below / total,
        stages=tuple(stages),
        top=tuple(map(Candidate, shown, scores, raw, probabilities)),
        rest_raw_p=max(0.0, 1.0 - sum(raw)),
        rest_p=max(0.0, 1.0 - sum(probabilities)),
    )


def final_probabilities(candidates: Candidates, shown: list[int]) -> dict[int, float]:
    """The probabilities that the draw was made from, of those among `shown` that survived.

    Looks only at these: sorting the vocabulary to show five tokens costs more than a step of a small model.
    """
    survivors = [i for i in shown if candidates.survives(i)]
    return {i: float(candidates.weights[i]) / candidates.mass for i in survivors}
