"""How the next token is chosen: one frozen record, checked when it is made."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from types import MappingProxyType

from tokenglass.errors import ParameterError

GREEDY_BELOW = 1e-5  # a temperature this low is the best token; dividing by it would only overflow


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """The settings, in the order in which they act; each one's off value, and also None, leaves it out.

    logit_bias         {token id: -100 … 100} is added; -100 bans a token, 100 forces it
    repetition_penalty > 1 weakens every token of prompt and answer (https://arxiv.org/abs/1909.05858); off: 1
    presence_penalty   is taken from every token of the answer, -2 … 2; off: 0
    frequency_penalty  is taken as often as the token stands in the answer, -2 … 2; off: 0
    temperature        divides; 0 is the best token
    top_k              keeps the k best; off: 0 or -1
    top_p              keeps the smallest set whose mass reaches it (https://arxiv.org/abs/1904.09751);
                       off: 1 or -1; 0 is the best token
    min_p              keeps what has at least this share of the best token's probability
                       (https://arxiv.org/abs/2407.01082); off: 0 or -1
    typical_p          keeps the smallest set of the most typical tokens whose mass reaches it
                       (https://arxiv.org/abs/2202.00666); off: 1 or -1
    seed               None: one is drawn and can be read back

    ParameterError: a value that is not a number or outside its range, named as the caller wrote it.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    typical_p: float = 1.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int | None = None

    def __post_init__(self) -> None:
        for name, off in OFF_VALUES.items():
            value = getattr(self, name)
            if value is None or (value == -1 and not isinstance(value, bool) and name in CUTS):
                object.__setattr__(self, name, off)
        check_number("temperature", self.temperature, 0.0, 100.0)
        check_integer("top_k", self.top_k, 0, 1 << 31)
        for name in ("top_p", "min_p", "typical_p"):
            check_number(name, getattr(self, name), 0.0, 1.0)
        check_number("repetition_penalty", self.repetition_penalty, 0.01, 100.0)
        for name in ("presence_penalty", "frequency_penalty"):
            check_number(name, getattr(self, name), -2.0, 2.0)
        object.__setattr__(self, "logit_bias", checked_bias(self.logit_bias))
        if self.seed is None:
            object.__setattr__(self, "seed", secrets.randbits(32))
        else:
            check_integer("seed", self.seed, 0, (1 << 64) - 1)

    @property
    def is_greedy(self) -> bool:
        """Whether only the best token (after bias and penalties) can come out."""
        return self.temperature < GREEDY_BELOW or self.top_p == 0.0 or self.top_k == 1

    @property
    def has_edits(self) -> bool:
        """Whether logits of single tokens change before anything else."""
        penalties = (self.repetition_penalty, self.presence_penalty, self.frequency_penalty)
        return bool(self.logit_bias) or penalties != (1.0, 0.0, 0.0)


CUTS = ("top_k", "top_p", "min_p", "typical_p")
OFF_VALUES: Mapping[str, object] = MappingProxyType(
    {
        setting.name: {} if setting.default is MISSING else setting.default
        for setting in fields(Sampling)
        if setting.name != "seed"
    }
)


def checked_bias(bias: Mapping[int, float]) -> Mapping[int, float]:
    """A read-only copy. ParameterError: a key that is no token id, a value outside -100 … 100."""
    if not isinstance(bias, Mapping):
        raise ParameterError("logit_bias", f"must map token ids to numbers, not {type(bias).__name__}")
    for token_id, value in bias.items():
        check_integer("logit_bias key", token_id, 0, (1 << 31) - 1)
        check_number(f"logit_bias[{token_id}]", value, -100.0, 100.0)
    return MappingProxyType(dict(bias))


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
