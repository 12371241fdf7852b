"""The loop of `engine/loop.py` written out by hand twice: as a first book shows it, and with a cache.

Both score every token, take the best one and append it. The first computes the whole text again for each
token; the second keeps keys and values and computes one row. Nothing else differs, and the tokens are the
same, bit for bit. Measured and shown by `explain_cache.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tokenglass.cache.pages import pages_for
from tokenglass.engine import Engine
from tokenglass.errors import ModelOutputError
from tokenglass.models.batch import Batch, Slice
from tokenglass.sampling.candidates import Scores

Loop = Callable[[Engine, Sequence[int], int], Iterator[tuple[int, int]]]


def naive_loop(engine: Engine, prompt_ids: Sequence[int], num_tokens: int) -> Iterator[tuple[int, int]]:
    """(token, rows computed for it): everything, every time."""
    ids = list(prompt_ids)
    for _ in range(num_tokens):
        pages = engine.scheduler.pool.take(pages_for(len(ids)))  # nothing is left from the step before
        logits = engine.model.forward(Batch((Slice(ids, start=0, pages=pages),)))
        engine.scheduler.pool.give_back(pages)
        token = best(logits, len(ids))
        yield token, len(ids)
        ids.append(token)


def cached_loop(engine: Engine, prompt_ids: Sequence[int], num_tokens: int) -> Iterator[tuple[int, int]]:
    """(token, rows computed for it): what is new since the step before."""
    ids = list(prompt_ids)
    pages = engine.scheduler.pool.take(pages_for(len(ids) + num_tokens))
    num_cached = 0
    for _ in range(num_tokens):
        end = pages_for(len(ids))
        logits = engine.model.forward(Batch((Slice(ids[num_cached:], num_cached, pages[:end]),)))
        token = best(logits, len(ids))
        yield token, len(ids) - num_cached
        num_cached = len(ids)
        ids.append(token)
    engine.scheduler.pool.give_back(pages)


def best(logits: Scores, position: int) -> int:
    """The token with the highest score. ModelOutputError: no score is a number."""
    token = logits.argmax(0)
    if token < 0:
        raise ModelOutputError(position)
    return token


@dataclass
class Measured:
    """What a loop did, token by token."""

    token_ids: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)  # of each token alone

    def tokens_per_s(self, num_tokens: int) -> float:
        """Of the first `num_tokens`, the prompt's time included."""
        return num_tokens / sum(self.seconds[:num_tokens])


def measure(
    loop: Loop,
    engine: Engine,
    prompt_ids: Sequence[int],
    num_tokens: int,
    on_token: Callable[[Measured], None] = lambda _: None,
) -> Measured:
    """Runs a loop to its end and times each token."""
    measured = Measured()
    before_s = time.perf_counter()
    for token, num_rows in loop(engine, prompt_ids, num_tokens):
        measured.seconds.append(time.perf_counter() - before_s)
        measured.token_ids.append(token)
        measured.rows.append(num_rows)
        on_token(measured)
        before_s = time.perf_counter()
    return measured
