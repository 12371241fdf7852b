"""The distribution of a next token, written a second time: plain loops over the whole vocabulary in float64.

Shares no line with `tokenglass.sampling`; slow, and easy to hold against docs/en/sampling.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tokenglass.sampling import Sampling


def expected_distribution(
    z: Sequence[float], sampling: Sampling, prompt: Sequence[int] = (), answer: Sequence[int] = ()
) -> NDArray[np.float64]:
    """float64 [vocab], sum 1, for the token after prompt and answer. Bias 100 (a force) is not done here."""
    logits = [float(x) for x in z]
    for token, bias in sampling.logit_bias.items():
        logits[token] = -math.inf if bias == -100 else logits[token] + bias
    for token in set(prompt) | set(answer):
        factor = sampling.repetition_penalty
        logits[token] = logits[token] / factor if logits[token] > 0 else logits[token] * factor
    for token in set(answer):
        logits[token] -= sampling.presence_penalty
        logits[token] -= sampling.frequency_penalty * list(answer).count(token)
    best = max(logits)
    p = shared([math.exp((x - best) / sampling.temperature) for x in logits])
    order = sorted(range(len(p)), key=lambda i: (-logits[i], i))
    if sampling.top_k > 0:
        p = only(p, order[: sampling.top_k])
    if sampling.top_p < 1:
        p = only(p, reaching(p, order, sampling.top_p))
    if sampling.min_p > 0:
        p = only(p, [i for i in order if p[i] >= sampling.min_p * p[order[0]]])
    if sampling.typical_p < 1:
        entropy = -sum(x * math.log(x) for x in p if x > 0)
        alive = [i for i in order if p[i] > 0]
        nearest = sorted(alive, key=lambda i: abs(-math.log(p[i]) - entropy))
        p = only(p, reaching(p, nearest, sampling.typical_p))
    return np.array(p)


def reaching(p: Sequence[float], order: Sequence[int], mass: float) -> list[int]:
    """The shortest beginning of `order` whose probabilities add up to `mass`."""
    total, kept = 0.0, []
    for i in order:
        kept.append(i)
        total += p[i]
        if total >= mass:
            break
    return kept


def only(p: Sequence[float], kept: Sequence[int]) -> list[float]:
    """The probabilities of these, which share 1 again; 0 for all others."""
    alive = set(kept)
    return shared([x if i in alive else 0.0 for i, x in enumerate(p)])


def shared(p: Sequence[float]) -> list[float]:
    total = sum(p)
    return [x / total for x in p]
