"""One token per row of logits, and why.

The draw at a position is a pure function of (seed, position): a run can be replayed and neighbours change
nothing. Tokens lie on a line from the most likely down and the draw's point on it decides, so a likely token
is also an early one and only the head of the vocabulary is ever sorted. Next: `stages.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tokenglass.errors import ModelOutputError
from tokenglass.sampling.candidates import Candidates, Scores
from tokenglass.sampling.params import Sampling
from tokenglass.sampling.reasons import reasons_of
from tokenglass.sampling.stages import cut, edit
from tokenglass.trace import Decision, Stage


@dataclass(frozen=True)
class Draw:
    """What one row asks for: the token after `ids`, of which the first `num_prompt` are the prompt.

    trace_top: how many candidates the reasons show; None: nobody asks for reasons. banned: ids that are not
    to be chosen here, whatever their scores.
    """

    sampling: Sampling
    ids: Sequence[int]
    num_prompt: int = 0
    trace_top: int | None = None
    banned: frozenset[int] = frozenset()

    @property
    def position(self) -> int:
        """Where the drawn token will stand."""
        return len(self.ids)


@dataclass(frozen=True)
class Choice:
    """The token a row got, and why where that was asked. `error`: there was nothing to choose."""

    token_id: int
    decision: Decision | None = None
    error: ModelOutputError | None = None


def choose(logits: Scores, draws: Sequence[Draw]) -> list[Choice]:
    """One choice per row of logits; draws[i] belongs to row i."""
    return [choose_row(logits, row, draw) for row, draw in enumerate(draws)]


def choose_row(logits: Scores, row: int, draw: Draw) -> Choice:
    """The token that `draw` gives for this row."""
    sampling = draw.sampling
    scores, at = logits, row
    is_edited = sampling.has_edits or bool(draw.banned)
    if is_edited:
        edited = edit(logits.numpy()[row], sampling, draw.ids, draw.num_prompt, draw.banned)
        scores, at = logits.replaced(edited), 0
    best = scores.argmax(at)
    if best < 0:
        return Choice(-1, error=ModelOutputError(draw.position))
    stages: list[Stage] | None = None if draw.trace_top is None else []
    if sampling.is_greedy:
        candidates, token_id = None, best
    else:
        assert sampling.seed is not None, "Sampling draws a seed when it gets none"
        candidates = Candidates(scores, at, sampling.temperature)
        cut(candidates, sampling, stages)
        token_id = candidates.draw(uniform(sampling.seed, draw.position))
    if draw.trace_top is None or stages is None:
        return Choice(token_id)
    return Choice(token_id, reasons_of(logits, row, token_id, candidates, stages, draw.trace_top, is_edited))


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) with 53 random bits, from two rounds of SplitMix64's mixer.

    Source: https://doi.org/10.1145/2714064.2660195.
    """
    return (_mix(_mix(seed + 0x9E3779B97F4A7C15) + position * 0xD1342543DE82EF95) >> 11) * 2.0**-53


_MASK = (1 << 64) - 1


def _mix(z: int) -> int:
    z &= _MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _MASK
    return z ^ (z >> 31)
