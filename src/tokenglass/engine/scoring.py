"""How likely a text is: the log-probability of each token given those before it, and perplexity.

The rows are those of `all_rows.py`: the same forward pass, the same bits as in the loop. Logarithms are in
double precision. Definitions: docs/en/score.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokenglass.engine.all_rows import all_rows
from tokenglass.engine.loop import Engine
from tokenglass.errors import ModelOutputError, ParameterError
from tokenglass.sampling.distribution import log_softmax
from tokenglass.sampling.params import check_integer

LN2 = math.log(2.0)
MAX_TOP = 1 << 10


@dataclass(frozen=True, eq=False)
class TokenScores:
    """Of each id, given all before it: logprobs, float64 [ids], natural logarithms; ranks, int64 [ids], 1 the
    best, of equals the lower id; top: for each id the best (id, logprob) at its place.

    The first id has nothing before it: NaN, 0, none. A token that the model excludes has -inf.
    """

    ids: Sequence[int]
    logprobs: NDArray[np.float64]
    ranks: NDArray[np.int64]
    top: list[list[tuple[int, float]]]


def token_scores(engine: Engine, ids: Sequence[int], *, top: int = 0) -> TokenScores:
    """Scores ids in one prefill, 32 rows at a time. Errors as for `all_rows`; ModelOutputError: logits of
    which no logarithm can be taken; ParameterError: `top` out of range, or fewer than two ids.
    """
    check_integer("top", top, 0, MAX_TOP)
    if len(ids) < 2:
        raise ParameterError("text", f"has {len(ids)} tokens; a score needs at least two")
    logprobs, ranks = np.full(len(ids), np.nan), np.zeros(len(ids), np.int64)
    best: list[list[tuple[int, float]]] = [[] for _ in ids]
    for start, scores in all_rows(engine, ids):
        z = scores.numpy()
        for row, target in enumerate(ids[start + 1 : start + 1 + len(z)]):
            at = start + 1 + row
            log_p = log_softmax(z[row])
            if np.isnan(log_p[target]):
                raise ModelOutputError(at)
            logprobs[at] = log_p[target]
            ranks[at] = rank_of(z[row], target)
            best[at] = [(i, float(log_p[i])) for i in scores.top(row, top).tolist()] if top else []
    return TokenScores(ids, logprobs, ranks, best)


def rank_of(z: NDArray[np.float32], token_id: int) -> int:
    """The token's place among all logits, 1 the best; of equals the lower id is better."""
    better = np.count_nonzero(z > z[token_id]) + np.count_nonzero(z[:token_id] == z[token_id])
    return int(better) + 1


def continued(engine: Engine, prompt: str, continuation: str) -> tuple[list[int], int]:
    """(ids of prompt and continuation as one text, where the continuation begins): it begins where the ids
    stop being the prompt's own, so a token across the border counts. ParameterError: one of them is empty.
    """
    for name, text in (("prompt", prompt), ("continuation", continuation)):
        if not text:
            raise ParameterError(name, "is empty")
    before, whole = engine.tokenizer.encode(prompt), engine.tokenizer.encode(prompt + continuation)
    same = next((i for i, (a, b) in enumerate(zip(before, whole, strict=False)) if a != b), len(before))
    if same >= len(whole):  # a tokenizer that drops it, such as white space at the end
        raise ParameterError("continuation", "is empty")
    return whole, max(same, 1)


@dataclass(frozen=True)
class Perplexity:
    """The figures of a text, or of the part that is scored so far.

    tokens: how many were predicted; num_bytes: what these tokens spell; total_logprob: the sum of their
    natural log-probabilities.
    """

    tokens: int
    num_bytes: int
    total_logprob: float
    windows_done: int
    num_windows: int

    @property
    def perplexity(self) -> float:
        """e^(mean of -logprob) over all predicted tokens."""
        return exp(-self.total_logprob / self.tokens)

    @property
    def bits_per_byte(self) -> float:
        """-log2 of the probability, for each byte: comparable between tokenizers."""
        return -self.total_logprob / LN2 / self.num_bytes if self.num_bytes else math.nan


def perplexity(
    engine: Engine, text: str, *, window: int | None = None, stride: int | None = None
) -> Iterator[Perplexity]:
    """The figures after each window: the last ones are the text's.

    window: tokens of one forward pass, BOS included where the model wants one (None: the whole context
    window); stride: how far windows are apart (None: they do not overlap). Every token is predicted once, in
    the first window that holds it, from all tokens of that window before it. ParameterError: a setting out of
    range, or too short a text.
    """
    vocabulary = engine.tokenizer.vocabulary
    head = [vocabulary.bos_id] if vocabulary.add_bos and vocabulary.bos_id is not None else []
    window = engine.context_length if window is None else window
    check_integer("window", window, 2, engine.context_length)
    room = window - len(head)
    stride = room if stride is None else stride
    check_integer("stride", stride, 1, room)
    ids = engine.tokenizer.encode(text, bos=False)
    if len(head) + len(ids) < 2:
        raise ParameterError("text", f"has {len(head) + len(ids)} tokens; a score needs at least two")
    starts = range(0, max(len(ids) - room, 0) + stride, stride)
    tokens, num_bytes, total, seen = 0, 0, 0.0, 0
    for number, start in enumerate(starts, 1):
        part = head + ids[start : start + room]
        new = slice(max(len(head) + seen - start, 1), None)
        if len(part) > 1:  # else the one token left has nothing before it
            total += float(token_scores(engine, part).logprobs[new].sum())
            tokens += len(part[new])
            num_bytes += sum(len(vocabulary.token_bytes(i)) for i in part[new])
        seen = min(start + room, len(ids))
        yield Perplexity(tokens, num_bytes, total, number, len(starts))


def exp(value: float) -> float:
    """e^value, infinite where that is more than a float holds."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
