"""The records of a decision. Made only where somebody listens; they change nothing about the choice.

Probabilities come twice: `raw_p` from the model's own logits, before anything touched them (temperature 1),
and `p` after every stage, what the draw was made from. Shown candidates and the rest add up to 1 in both.

Named tuples inside: a step makes a dozen of them, and frozen dataclasses take five times as long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple


class Stage(NamedTuple):
    """One stage that was on: its setting, how many tokens were left, and which share of the mass it was
    given.
    """

    name: str
    setting: float
    survivors: int
    mass: float


class Candidate(NamedTuple):
    """A token that could have come: its logit as the model gave it, its probability before and after the
    stages.
    """

    token_id: int
    logit: float
    raw_p: float
    p: float


class Decision(NamedTuple):
    """Why this token: its rank among all logits (1 is the best), its log-probabilities, the entropy of the
    raw distribution (nats), the stages in their order, the best candidates (the chosen one is always among
    them) and what all the others have together.
    """

    token_id: int
    rank: int
    raw_logp: float
    logp: float
    entropy: float
    stages: tuple[Stage, ...]
    top: tuple[Candidate, ...]
    rest_raw_p: float
    rest_p: float

    @property
    def surprisal_bits(self) -> float:
        """-log2 of the token's raw probability: how unexpected it was."""
        return -self.raw_logp / math.log(2)


@dataclass(frozen=True)
class TokenEvent:
    """One token of an answer, as it came. `index` counts from 0; `position` is where it stands in the whole
    text.

    phase: `prefill` where the pass that gave the token computed the prompt too (without a cache every pass
    does), else `decode`. step_s: from the token
    before (or from the request's start). kv_bytes: keys and values kept when it was chosen. token_bytes: its
    own, maybe a torn character; text: what became whole and visible with it. top_bytes: those of the
    decision's candidates, in their order, so that a stored trace can be read without its model.
    """

    index: int
    position: int
    phase: str
    token_bytes: bytes
    text: str
    step_s: float
    kv_bytes: int
    decision: Decision
    finish_reason: str | None = None
    top_bytes: tuple[bytes, ...] = ()
