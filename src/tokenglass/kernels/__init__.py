"""The front door to the kernels: bound operations over buffers.

A kernel has three faces under one name: the C++ (`csrc/`, bound by `csrc/bind*.cpp` as `_native`), its
readable numpy twin (`reference.py`), and the typed signature with shapes (`_native.pyi`). A model binds its
operations to weights when it is loaded and a step passes buffers: `linear(x, out)`. `cpu()` picks the
instruction set; `TOKENGLASS_ISA` forces one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tokenglass.errors import ParameterError
from tokenglass.kernels._native import (
    GELU,
    GROUP,
    PAGE,
    SPAN,
    AddNorm,
    Attention,
    Batch,
    Cpu,
    Embedding,
    GeGLU,
    KVPages,
    LayerNorm,
    Linear,
    Matrix,
    Merger,
    PositionEmbedding,
    RMSNorm,
    RopeStore,
    RopeTable,
    RowOperation,
    Rows,
    SwiGLU,
    has_panels,
    int8_peak,
    read_all,
    runnable_isas,
    take_outputs,
)

__all__ = [
    "GELU",
    "GROUP",
    "PAGE",
    "SPAN",
    "AddNorm",
    "Attention",
    "Batch",
    "Cpu",
    "Embedding",
    "GeGLU",
    "KVPages",
    "Kernels",
    "LayerNorm",
    "Linear",
    "Logits",
    "Matrix",
    "Merger",
    "PositionEmbedding",
    "RMSNorm",
    "RopeStore",
    "RopeTable",
    "RowOperation",
    "Rows",
    "SwiGLU",
    "cpu",
    "has_panels",
    "int8_peak",
    "read_all",
    "runnable_isas",
    "take_outputs",
]

Kernels: TypeAlias = Any  # this module, or `reference`, which has the same names and gives the same bits
_FORCED_ISA = os.environ.get("TOKENGLASS_ISA") or None


def cpu(num_threads: int, isa: str | None = None) -> Cpu:
    """Threads and instruction set for the operations bound with it. `isa`: one of `runnable_isas()`; None
    takes the best.
    """
    known = runnable_isas()
    isa = isa or _FORCED_ISA or known[0]
    if isa not in known:
        raise ParameterError(
            "TOKENGLASS_ISA", f"is {isa!r}; this processor and build can run: {', '.join(known)}"
        )
    return Cpu(num_threads, isa)


@dataclass(frozen=True)
class Logits:
    """The scores of every next token, float32 [rows, vocab], in the model's own buffer: valid until its next
    step.

    `vocab` leaves out padding rows that belong to no token; they can never be chosen.
    """

    cpu: Cpu
    rows: Rows
    vocab: int

    def __len__(self) -> int:
        return self.rows.count

    def argmax(self, row: int) -> int:
        """The best token's id, of equals the lowest; -1 where no logit is a finite number to choose."""
        return self.cpu.argmax(self.rows, row, self.vocab)

    def top(self, row: int, num: int) -> NDArray[np.int32]:
        """Ids of the `num` best tokens, best first, equals by id: int32 [min(num, vocab)]."""
        return self.cpu.top(self.rows, row, self.vocab, num)

    def weights(self, row: int, temperature: float) -> tuple[NDArray[np.float32], float]:
        """e^((logit - max) / temperature) for each token, float32 [vocab], and their sum: weights / sum is
        the softmax.
        """
        return self.cpu.softmax_weights(self.rows, row, self.vocab, temperature)

    def survey(
        self, row: int, token_id: int, num: int
    ) -> tuple[float, float, float, int, list[int], list[float]]:
        """For the reasons of a choice, in one call: (largest logit, sum of e^(logit - largest), sum of that
        times (logit - largest), number of tokens better than `token_id`, ids of the `num` best with
        `token_id` behind them where it is none of them, their logits).
        """
        return self.cpu.survey(self.rows, row, self.vocab, token_id, num)

    def replaced(self, scores: NDArray[np.float32]) -> Logits:
        """One row of other scores, float32 [vocab], in a buffer of its own."""
        rows = Rows(1, self.vocab)
        rows.fill(scores.reshape(1, -1))
        return Logits(self.cpu, rows, self.vocab)

    def numpy(self) -> NDArray[np.float32]:
        """A view of the scores, float32 [rows, vocab]."""
        return self.rows.numpy()[:, : self.vocab]
