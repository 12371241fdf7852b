"""How the next token is chosen: one frozen record, checked when it is made."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass

from tokenglass.errors import ParameterError

GREEDY_BELOW = 1e-5  # a temperature this low is the best token; dividing by it would only overflow


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """temperature 0: the best token. top_k 0 or -1 and top_p 1: no cut. seed None: one is drawn and can be
    read back.

    Order: temperature, top-k, top-p (the smallest set whose mass reaches top_p; top_p 0 is the best token).
    ParameterError: a value that is not a number or outside its range.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int | None = None

    def __post_init__(self) -> None:
        check_number("temperature", self.temperature, 0.0, 100.0)
        check_number("top_p", self.top_p, 0.0, 1.0)
        check_integer("top_k", self.top_k, -1, 1 << 31)
        if self.seed is None:
            object.__setattr__(self, "seed", secrets.randbits(32))
        else:
            check_integer("seed", self.seed, 0, (1 << 64) - 1)

    @property
    def is_greedy(self) -> bool:
        return self.temperature < GREEDY_BELOW or self.top_p == 0.0 or self.top_k == 1


def check_number(name: str, value: float, low: float, high: float) -> None:
    """ParameterError unless `value` is a number from `low` to `high`."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or math.isnan(value)
        or not low <= value <= high
    ):
        raise ParameterError(name, f"must be a number from {low:g} to {high:g}, not {value!r}")


def check_integer(name: str, value: int, low: int, high: int) -> None:
    """ParameterError unless `value` is a whole number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ParameterError(name, f"must be a whole number from {low} to {high}, not {value!r}")
