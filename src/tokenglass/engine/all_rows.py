"""The logits after every id of a text, a few rows at a time: what scoring a text needs and the loop does not.

The bits are those of the loop: how ids are cut into steps changes no number (docs/en/numerics.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tokenglass.cache.pages import pages_for
from tokenglass.engine.loop import Engine
from tokenglass.errors import ContextFullError, ParameterError
from tokenglass.models.batch import Batch, Slice
from tokenglass.sampling.candidates import Scores
from tokenglass.sampling.params import check_integer


def all_rows(engine: Engine, ids: Sequence[int]) -> Iterator[tuple[int, Scores]]:
    """Steps through `ids`: (index of the first id, logits [rows, vocab] after it and those that follow).

    Logits are valid until the next step; a step has as many rows as the model has room for scores (32).
    ParameterError: no ids, or one that is no token; ContextFullError: more than the window holds;
    TokenglassError: others hold the cache's pages.
    """
    if not ids:
        raise ParameterError("text", "is empty")
    for token_id in ids:
        check_integer("token id", token_id, 0, engine.tokenizer.vocabulary.num_tokens - 1)
    if len(ids) > engine.context_length:
        raise ContextFullError(len(ids), engine.context_length)
    scheduler = engine.scheduler
    pages = scheduler.reserve(pages_for(len(ids)))
    try:
        for start in range(0, len(ids), scheduler.max_running):
            new_ids = ids[start : start + scheduler.max_running]
            end = start + len(new_ids)
            piece = Slice(new_ids, start, pages[: pages_for(end)], num_outputs=len(new_ids))
            yield start, engine.model.forward(Batch((piece,)))
    finally:
        scheduler.pool.give_back(pages)
