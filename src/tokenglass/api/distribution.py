"""What could come next: a score for every token of the vocabulary, and the view of it at any temperature.

The logits are the model's own, so another temperature is exact and asks the model nothing. Sampling stages
(top-k, top-p, …) are not shown here: `Step.draw` says what each of them left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tokenglass.api import look
from tokenglass.api.text import readable
from tokenglass.sampling.distribution import log_softmax
from tokenglass.sampling.params import GREEDY_BELOW, check_integer, check_number
from tokenglass.tokens import Vocabulary

NUM_SHOWN = 10  # rows of a printed distribution
LN2 = math.log(2.0)


@dataclass(frozen=True)
class TokenProbability:
    """A token that could come next. rank: 1 is the best; logit: as the model gave it, at any temperature."""

    rank: int
    id: int
    bytes: bytes
    logit: float
    probability: float

    @property
    def text(self) -> str:
        return readable(self.bytes)


@dataclass(frozen=True, eq=False, repr=False)
class Distribution:
    """What could come next: a score for every token of the vocabulary.

    logits: float32 [vocab], read-only, as the model gave them; num_shown: how many tokens are printed.
    `p = softmax(logits / temperature)`; a temperature of 0 has everything on the best token. Logits
    [2, 1, 0, -1] give probabilities .644 .237 .087 .032 and an entropy of 0.948 nats.
    """

    logits: NDArray[np.float32]
    vocabulary: Vocabulary
    at_temperature: float = 1.0
    num_shown: int = NUM_SHOWN

    def temperature(self, temperature: float) -> Distribution:
        """The same logits at another temperature, exactly, without asking the model. ParameterError: not
        from 0 to 100.
        """
        check_number("temperature", temperature, 0.0, 100.0)
        return Distribution(self.logits, self.vocabulary, temperature, self.num_shown)

    @cached_property
    def logprobs(self) -> NDArray[np.float64]:
        """Natural logarithms of the probabilities, float64 [vocab]."""
        if self.at_temperature < GREEDY_BELOW:
            logprobs = np.full(len(self.logits), -np.inf)
            logprobs[int(self.logits.argmax())] = 0.0
            return logprobs
        return log_softmax(self.logits / np.float64(self.at_temperature))

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """float64 [vocab]; their sum is 1."""
        probabilities: NDArray[np.float64] = np.exp(self.logprobs)
        return probabilities

    @cached_property
    def entropy(self) -> float:
        """-sum p ln p, in nats (divide by ln 2 for bits): 0 when one token is certain."""
        p = self.probabilities
        return float(-(p[p > 0] * self.logprobs[p > 0]).sum() + 0.0)

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """All ids, the best first, equals by id: int64 [vocab]."""
        return np.argsort(-self.logits, kind="stable")

    def top(self, num: int | None = None) -> list[TokenProbability]:
        """The `num` best tokens (None: as many as are printed), best first."""
        ids = self.order[: self.num_shown if num is None else num].tolist()
        return [self._token(rank, token_id) for rank, token_id in enumerate(ids, 1)]

    def token(self, token_id: int) -> TokenProbability:
        """One token's score, whatever its rank. ParameterError: no such id."""
        check_integer("token_id", token_id, 0, len(self.logits) - 1)
        raw = self.vocabulary.token_bytes(token_id)
        z = self.logits
        better = np.count_nonzero(z > z[token_id]) + np.count_nonzero(z[:token_id] == z[token_id])
        return TokenProbability(
            int(better) + 1, token_id, raw, float(z[token_id]), float(self.probabilities[token_id])
        )

    def _token(self, rank: int, token_id: int) -> TokenProbability:
        raw = self.vocabulary.token_bytes(token_id)
        return TokenProbability(
            rank, token_id, raw, float(self.logits[token_id]), float(self.probabilities[token_id])
        )

    def summary(self) -> str:
        """`49152 tokens, temperature 1, entropy 2.49 nats (3.59 bits)`"""
        return (
            f"{len(self.logits)} tokens, temperature {self.at_temperature:g}, "
            f"entropy {self.entropy:.2f} nats ({self.entropy / LN2:.2f} bits)"
        )

    def rest(self) -> float:
        """The probability of all tokens that are not printed, together."""
        return max(0.0, 1.0 - sum(token.probability for token in self.top()))

    def __repr__(self) -> str:
        lines = [f"Distribution: {self.summary()}", f"{'rank':>5} {'id':>7} {'logit':>8} {'p':>8}  token"]
        lines += [
            f"{t.rank:>5} {t.id:>7} {t.logit:>8.3f} {t.probability:>8.4f}  '{look.printable(t.text)}'"
            for t in self.top()
        ]
        return "\n".join([*lines, f"{'':>22} {self.rest():>8.4f}  all others"])

    def _repr_html_(self) -> str:
        rows = [(t.rank, t.id, t.text, t.logit, t.probability) for t in self.top()]
        return look.distribution(self.summary(), rows, self.rest())
