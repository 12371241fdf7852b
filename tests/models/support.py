"""Runs a model without the engine: a list of ids through one sequence, in chunks of a given size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tokenglass import kernels
from tokenglass.cache.pages import pages_for
from tokenglass.formats import open_model
from tokenglass.models.batch import Batch, Slice
from tokenglass.models.decoder import Decoder
from tokenglass.models.registry import architecture_of
from tokenglass.models.weights import Space, Weights


def bind(
    path: Path,
    *,
    exact: bool = False,
    kv: str = "f16",
    num_threads: int = 2,
    isa: str | None = None,
    ops: kernels.Kernels = kernels,
    num_pages: int = 64,
    max_rows: int = 512,
) -> Decoder:
    """The model in `path`, every row of a step allowed to want logits."""
    cpu = kernels.cpu(num_threads, isa) if ops is kernels else ops.Cpu(1, "plain")
    with open_model(path) as file:
        weights = Weights(file, cpu, exact=exact, ops=ops)
        vocab = file.tensors["token_embd.weight"].shape[0]
        return architecture_of(file)(
            weights, space=Space(num_pages * 16, num_pages, kv, max_rows, max_rows), vocab=vocab
        )


def all_logits(
    model: Decoder, ids: list[int], *, chunk: int = 512, pages: list[int] | None = None
) -> NDArray[np.float32]:
    """float32 [len(ids), vocab]: logits after every position, the prompt fed `chunk` ids at a time."""
    pages = pages if pages is not None else list(range(pages_for(len(ids))))
    rows = []
    for start in range(0, len(ids), chunk):
        new = ids[start : start + chunk]
        piece = Slice(new, start, pages[: pages_for(start + len(new))], len(new))
        rows.append(model.forward(Batch((piece,))).numpy().copy())
    return np.concatenate(rows)
