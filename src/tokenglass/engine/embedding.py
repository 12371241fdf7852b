"""A text as one vector: the hidden states after the final norm, pooled. The forward pass is the loop's own
(`all_rows.py`), so a text's vector has the same bits whoever else is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tokenglass.engine.all_rows import all_rows
from tokenglass.engine.loop import Engine
from tokenglass.errors import ModelOutputError, ParameterError
from tokenglass.models.decoder import Decoder

Pooling = Literal["mean", "last", "cls"]
POOLINGS: tuple[Pooling, ...] = get_args(Pooling)


def embed(
    engine: Engine, ids: Sequence[int], *, pooling: Pooling = "mean", normalize: bool = True
) -> NDArray[np.float32]:
    """The vector of a text in ids, float32 [hidden].

    pooling: the mean of all positions, summed in double precision; the last position, which alone has seen
    the whole text; the first one (cls), which has seen only itself in these models. normalize: divided by its
    length (a vector of zeros stays). ParameterError: no ids, an unknown pooling, a model whose hidden states
    are not ours; ContextFullError; ModelOutputError: a number that is none.
    """
    if pooling not in POOLINGS:
        raise ParameterError("pooling", f"must be mean, last or cls, not {pooling!r}")
    model = engine.model
    if not isinstance(model, Decoder):
        raise ParameterError("engine", "must be tokenglass for embeddings")
    total = np.zeros(model.config.hidden)
    for start, _ in all_rows(engine, ids):
        rows = model.last_hidden()
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(bad):
            raise ModelOutputError(start + int(bad[0]))
        if pooling == "mean":
            for row in rows:  # one after another: the order of the sum is the text's
                total += row
        elif pooling == "last" or start == 0:
            total[:] = rows[-1 if pooling == "last" else 0]
    if pooling == "mean":
        total /= len(ids)
    length = float(np.sqrt(np.sum(total * total)))
    if normalize and length > 0:
        total /= length
    return total.astype(np.float32)
