"""The kernels in numpy: the names and calls of `_native`, the same bits, made to be read.

A model bound to this module instead of `_native` computes the same numbers, some hundred times slower; tests
compare the two. Left out: checks, threads, speed. Here are weights and their products. What goes row by row
is in `reference_rows.py`, attention in `reference_attention.py`, the blocks of a file in
`reference_blocks.py`, the arithmetic of all (fused multiply-add, e^x, sums, quantisation) in
`reference_numbers.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tokenglass.kernels.reference_attention import (
    SPAN,
    Attention,
    KVPages,
    RopeStore,
    RopeTable,
)
from tokenglass.kernels.reference_blocks import FLOATS, FORMATS, Blocks, floats, num_bytes, unpack
from tokenglass.kernels.reference_numbers import F32, GROUP, f32, fma
from tokenglass.kernels.reference_rows import (
    GELU,
    I32,
    PAGE,
    AddNorm,
    Batch,
    Cpu,
    GeGLU,
    LayerNorm,
    PositionEmbedding,
    RMSNorm,
    RowOperation,
    Rows,
    SwiGLU,
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
    "LayerNorm",
    "Linear",
    "Matrix",
    "PositionEmbedding",
    "RMSNorm",
    "RopeStore",
    "RopeTable",
    "RowOperation",
    "Rows",
    "SwiGLU",
    "has_panels",
    "take_outputs",
]


class Matrix:
    """Weights [rows, cols] from the blocks of a file; order[i] is the file's row that becomes row i.

    bias: float32 [rows], in the file's order, added to what products with this matrix give. release: called
    with the number of bytes of `raw` that are not needed again.
    """

    def __init__(
        self,
        cpu: Cpu,
        format: str,
        raw: NDArray[np.uint8],
        rows: int,
        cols: int,
        order: I32 | None = None,
        bias: F32 | None = None,
        release: Callable[[int], object] | None = None,
    ) -> None:
        self.rows, self.cols = rows, cols
        if order is not None:
            raw = raw.reshape(rows, -1)[order].reshape(-1)
            bias = None if bias is None else bias[order]
        self.weights, self.bias = unpack(format, raw, rows, cols), bias
        self.num_bytes = num_bytes(format, rows, cols)
        if release is not None:
            release(raw.size)

    def columns(self) -> Iterator[F32]:
        """The weights as float32, column by column, each [rows]."""
        return self.weights.columns() if isinstance(self.weights, Blocks) else iter(self.weights.T)


class Embedding:
    """out[i] = scale * matrix[ids[i]], dequantised."""

    def __init__(self, cpu: Cpu, matrix: Matrix, scale: float = 1.0) -> None:
        self._table, self.scale = np.stack(list(matrix.columns()), axis=1), f32(scale)

    def __call__(self, batch: Batch, out: Rows) -> None:
        with np.errstate(all="ignore"):
            out.fill(self._table[batch.ids] * self.scale)


class Linear:
    """out = x W^T for one or several matrices side by side; `add`: out += it. Every output is one chain:

    float  for each column:           acc = fma(w, x, acc)
    int8   for each group of columns: s = sum of code * (q + zero), exact;  acc = fma(s * scale_x, d, acc)
                                      with a minimum also                   acc = fma(m, sum_x * scale_x, acc)
           with two scales a group, s and sum_x are sums over its halves times these, exact as well

    Matrices of blocks multiply int8 activations, unless `exact`. `before`: x passes it first, into `scratch`.
    """

    def __init__(
        self,
        cpu: Cpu,
        matrices: Sequence[Matrix],
        exact: bool = False,
        add: bool = False,
        before: RowOperation | None = None,
        scratch: Rows | None = None,
    ) -> None:
        self.matrices, self.exact, self.add = list(matrices), exact, add
        self.before, self.scratch = before, scratch
        self.num_bytes = sum(matrix.num_bytes for matrix in self.matrices)
        self.num_weights = sum(matrix.rows * matrix.cols for matrix in self.matrices)

    def __call__(self, x: Rows, out: Rows) -> None:
        if self.before and self.scratch:
            self.before(x, self.scratch)
            x = self.scratch
        product = np.concatenate([self._product(matrix, x) for matrix in self.matrices], axis=1)
        out.fill(out.numpy() + product if self.add else product)

    def _product(self, matrix: Matrix, x: Rows) -> F32:
        """[rows, outputs of this matrix]."""
        w = matrix.weights
        if self.exact or not isinstance(w, Blocks):
            acc = self._float_product(matrix, x)
        else:
            acc = self._int8_product(w, x)
        return acc if matrix.bias is None else acc + matrix.bias

    def _float_product(self, matrix: Matrix, x: Rows) -> F32:
        acc = np.zeros((x.count, matrix.rows), np.float32)
        for w_column, x_column in zip(matrix.columns(), x.numpy().T, strict=True):
            acc = fma(w_column, x_column[:, None], acc)
        return acc

    def _int8_product(self, w: Blocks, x: Rows) -> F32:
        q, scale, zero = x.int8()
        steps = q + zero[..., None]  # int32 [rows, groups, 32]: x in units of the scale
        acc = np.zeros((x.count, w.d.shape[1]), np.float32)
        for g in range(len(w.code)):
            scale_x = scale[:, g, None]  # [rows, 1]
            # Whole numbers below 2^24: float32 is exact here, in whatever order the library adds.
            halves = [floats(steps[:, g, h : h + 16]) @ floats(w.code[g, :, h : h + 16]).T for h in (0, 16)]
            if w.scale is None:
                s = halves[0] + halves[1]  # [rows, outputs]
            else:
                first, second = (half.astype(np.int32) * w.scale[g, :, h] for h, half in enumerate(halves))
                s = floats(first + second)
            with np.errstate(invalid="ignore", over="ignore"):
                acc = fma(s * scale_x, w.d[g], acc)
                if w.m is None:
                    continue
                if w.minimum is None:
                    below = floats(steps[:, g].sum(-1, keepdims=True)) * scale_x
                else:
                    sums = steps[:, g].reshape(-1, 2, 16).sum(-1, dtype=np.int32)  # [rows, 2]
                    below = floats(sums @ w.minimum[g].T) * scale_x
                acc = fma(w.m[g], below, acc)
        return acc


def has_panels(format: str) -> bool:
    """Whether blocks of this GGUF type are multiplied as they are."""
    return format in FORMATS or format in FLOATS
