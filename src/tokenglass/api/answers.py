"""An answer and a score: records that print as text and, in a notebook, as HTML (`look.py`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tokenglass.api import look
from tokenglass.api.distribution import LN2
from tokenglass.api.text import Tokens
from tokenglass.engine import Timings
from tokenglass.engine.scoring import exp
from tokenglass.sampling import Sampling


@dataclass(frozen=True)
class Usage:
    """Tokens of a request, named as in OpenAI's API."""

    prompt_tokens: int
    completion_tokens: int

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, repr=False)
class Generation:
    """An answer. `str(generation)` is its text.

    ids: the tokens that were drawn, an end token included; finish_reason: `stop` (an end token or a stop
    string) or `length`; sampling: the settings with the seed that was used; timings: counts and seconds;
    truncated_tokens: how many of the prompt did not fit and were left out, as `truncate` says.
    """

    text: str
    ids: tuple[int, ...]
    finish_reason: str
    prompt_ids: tuple[int, ...]
    sampling: Sampling
    timings: Timings = field(compare=False)
    truncated_tokens: int = 0

    @property
    def usage(self) -> Usage:
        return Usage(len(self.prompt_ids), len(self.ids))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Generation({self.text!r}, {len(self.ids)} tokens, {self.finish_reason})"

    def _repr_html_(self) -> str:
        note = f"{self.usage.prompt_tokens} + {len(self.ids)} tokens, {self.finish_reason}"
        return look.answer(self.text, f"{note}, {self.timings.decode_tokens_per_s:.0f} tokens/s")


@dataclass(frozen=True)
class TokenLogprob:
    """A token and its log-probability, named as in OpenAI's API; top_logprobs: the best at its place."""

    token: str
    bytes: bytes
    logprob: float
    top_logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Score:
    """How likely a text is, token by token.

    logprobs: float64 [tokens], natural logarithms: of each token, given all before it. The first one has
    nothing before it: NaN, and left out of every sum and mean; so is a prompt before a continuation.
    ranks: int64 [tokens], 1 where the token was the best; top: for each token the best ones at its place.
    """

    tokens: Tokens
    logprobs: NDArray[np.float64]
    ranks: NDArray[np.int64]
    top: Sequence[Sequence[TokenLogprob]]

    @property
    def content(self) -> list[TokenLogprob]:
        """The scored tokens, as OpenAI's API lists them."""
        return [
            TokenLogprob(token.text, token.bytes, float(logprob), tuple(top))
            for token, logprob, top in zip(self.tokens, self.logprobs, self.top, strict=True)
            if not math.isnan(logprob)
        ]

    @property
    def total_logprob(self) -> float:
        """ln of the probability of all scored tokens together, given those before them."""
        return float(np.nansum(self.logprobs))

    @property
    def perplexity(self) -> float:
        """e^(mean of -logprob): among how many equally likely tokens the model chose, so to speak."""
        return exp(-self.total_logprob / np.count_nonzero(~np.isnan(self.logprobs)))

    def __repr__(self) -> str:
        lines = [f"Score: {len(self.tokens)} tokens, perplexity {self.perplexity:.2f}"]
        lines += [
            f"{logprob:>9.3f}  '{look.printable(token.text)}'"
            for token, logprob in zip(self.tokens, self.logprobs, strict=True)
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        bits = [-logprob / LN2 for logprob in self.logprobs.tolist()]
        pieces = [(token.id, token.text) for token in self.tokens]
        return look.tokens(pieces, bits, f"perplexity {self.perplexity:.2f}")
