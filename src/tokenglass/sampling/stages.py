"""The stages between logits and the draw, each one a few lines, in the order in which they act.

bias, penalties (single logits change) -> temperature -> top-k -> top-p -> min-p -> typical. The order
matters: min-p after a temperature of 2 keeps more than before it. Stages that are off do not appear in the
reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tokenglass.errors import ParameterError
from tokenglass.sampling.candidates import Candidates
from tokenglass.sampling.params import OFF_VALUES, Sampling
from tokenglass.trace import Stage


def edit(
    z: NDArray[np.float32],
    sampling: Sampling,
    ids: Sequence[int],
    num_prompt: int,
    banned: Collection[int] = (),
) -> NDArray[np.float32]:
    """A copy of the logits [vocab] with bias and penalties applied; ids[:num_prompt] is the prompt, the rest
    the answer. `banned` tokens get -inf.
    """
    z = z.copy()
    apply_bias(z, sampling.logit_bias)
    z[list(banned)] = -np.inf
    repetition = np.float32(sampling.repetition_penalty)
    if repetition != 1.0:
        seen = np.unique(np.array(ids, np.int64))
        z[seen] = np.where(z[seen] > 0, z[seen] / repetition, z[seen] * repetition)
    if (sampling.presence_penalty or sampling.frequency_penalty) and len(ids) > num_prompt:
        written, counts = np.unique(np.array(ids[num_prompt:], np.int64), return_counts=True)
        penalty = sampling.presence_penalty + sampling.frequency_penalty * counts
        z[written] -= penalty.astype(np.float32)
    return z


def apply_bias(z: NDArray[np.float32], bias: Mapping[int, float]) -> None:
    """Adds the bias in place: -100 is a ban, and 100 lifts a token above all that have less."""
    outside = [token_id for token_id in bias if token_id >= len(z)]
    if outside:
        raise ParameterError("logit_bias", f"names token {outside[0]}; the vocabulary ends at {len(z) - 1}")
    finite = z[np.isfinite(z)]
    span = float(finite.max() - finite.min()) if len(finite) else 0.0
    for token_id, value in bias.items():
        z[token_id] = -np.inf if value == -100 else z[token_id] + value + (span if value == 100 else 0.0)


def top_k(candidates: Candidates, k: float) -> None:
    """Keeps the k best."""
    candidates.keep(int(k))


def top_p(candidates: Candidates, p: float) -> None:
    """Keeps the smallest beginning whose mass is at least p; the token that reaches p stays in."""
    candidates.keep(candidates.reaching(p * candidates.mass))


def min_p(candidates: Candidates, p: float) -> None:
    """Keeps tokens with at least p times the best one's probability."""
    best = candidates.weights[candidates.ids(1)[0]]
    candidates.keep(max(1, int(np.count_nonzero(candidates.weights >= np.float32(p) * best))))


def typical(candidates: Candidates, p: float) -> None:
    """Keeps the smallest set with mass of at least p of those whose surprisal is nearest to the entropy."""
    ids = candidates.ids(candidates.count)
    ids = ids[candidates.weights[ids] > 0]
    weights = candidates.weights[ids].astype(np.float64)
    surprisal = candidates.surprisal(ids)  # up to a constant, which the difference below takes out
    # Sums in order, so that the same bits come out everywhere.
    entropy = np.cumsum(weights * surprisal)[-1] / np.cumsum(weights)[-1]
    order = np.argsort(np.abs(surprisal - entropy), kind="stable")
    running = np.cumsum(weights[order])
    num = min(int(np.searchsorted(running, p * running[-1])) + 1, len(ids))
    candidates.keep_only(ids[np.sort(order[:num])])


CUTS: dict[str, Callable[[Candidates, float], None]] = {
    "top_k": top_k,
    "top_p": top_p,
    "min_p": min_p,
    "typical_p": typical,
}


def cut(candidates: Candidates, sampling: Sampling, reasons: list[Stage] | None = None) -> None:
    """Applies every cut that is on, in order; says what each one left, where somebody asks."""
    for name, stage in CUTS.items():
        setting = getattr(sampling, name)
        if setting == OFF_VALUES[name]:
            continue
        before = candidates.mass
        stage(candidates, setting)
        if reasons is not None:
            reasons.append(Stage(name, setting, candidates.count, candidates.mass / before))
