"""Rows of activations in numpy: the buffers, the batch, what is done row by row, and reading rows of logits.

Twins of `csrc/row_ops.h` and `csrc/vocab.h`. Each class says its formula and `__call__` is that formula,
in order. Next: `reference_attention.py`, then the products in `reference.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tokenglass.kernels.reference_numbers import F32, exp, f32, fma, lane_sum, quantise, sum_of_products

PAGE = 16  # positions in a KV page
I32 = NDArray[np.int32]


class Cpu:
    """Stands where `_native` has threads and an instruction set; here are none. Reads rows of logits."""

    def __init__(self, num_threads: int = 1, isa: str = "numpy") -> None:
        self.num_threads, self.isa = num_threads, isa
        self.is_timed, self.op_seconds = False, 0.0

    def argmax(self, logits: Rows, row: int, vocab: int) -> int:
        """The lowest id among the largest logits; NaN never wins. -1 where the largest is not finite."""
        z = logits.numpy()[row, :vocab]
        largest = np.fmax.reduce(z, initial=-np.inf)
        return int(np.argmax(z == largest)) if np.isfinite(largest) else -1

    def top(self, logits: Rows, row: int, vocab: int, num: int) -> I32:
        """Ids of the `num` largest logits, largest first, equals by id; never a NaN."""
        z = logits.numpy()[row, :vocab]
        ids = np.argsort(-z, kind="stable")
        return ids[~np.isnan(z[ids])][:num].astype(np.int32)

    def survey(
        self, logits: Rows, row: int, vocab: int, id: int, num: int
    ) -> tuple[float, float, float, int, list[int], list[float]]:
        """(largest, sum of e^(logit - largest), sum of that times (logit - largest), how many are better than
        `id`, ids of the `num` best and of `id`, their logits).
        """
        z = logits.numpy()[row, :vocab]
        weights, total = self.softmax_weights(logits, row, vocab, 1.0)
        largest = z[self.argmax(logits, row, vocab)]
        with np.errstate(all="ignore"):
            difference = z - largest
        difference = np.where(difference > -1e30, difference, f32(-1e30))
        below = sum(
            float(sum_of_products(weights[i : i + 4096], difference[i : i + 4096]))
            for i in range(0, vocab, 4096)
        )
        better = int(np.count_nonzero(z > z[id]) + np.count_nonzero(z[:id] == z[id]))
        shown = self.top(logits, row, vocab, num).tolist() if num else []
        shown += [] if id in shown else [id]
        return float(largest), total, below, better, shown, z[shown].tolist()

    def softmax_weights(self, logits: Rows, row: int, vocab: int, temperature: float) -> tuple[F32, float]:
        """e^((logit - largest) / temperature) and their sum: float32 lanes in 4096 numbers, then float64."""
        z = logits.numpy()[row, :vocab]
        best = self.argmax(logits, row, vocab)
        if best < 0:
            raise ValueError("no logit of this row is a finite number")
        with np.errstate(all="ignore"):
            weights = exp((z - z[best]) / f32(temperature))
        return weights, sum(float(lane_sum(weights[i : i + 4096])) for i in range(0, vocab, 4096))


class Rows:
    """Activations, float32 [count, width], in a buffer for `capacity` rows."""

    def __init__(self, capacity: int, width: int, quantised: bool = False) -> None:
        self.capacity, self.width, self.count = capacity, width, 0
        self._data = np.zeros((capacity, width), np.float32)
        self._int8: tuple[NDArray[np.int8], F32, I32] | None = None

    def numpy(self) -> F32:
        """A view of the rows in use."""
        return self._data[: self.count]

    def fill(self, values: F32) -> None:
        """Copies [n, width] in; the buffer then holds n rows."""
        self.count, self._int8 = len(values), None
        self._data[: self.count] = values

    def int8(self) -> tuple[NDArray[np.int8], F32, I32]:
        """q [count, groups, 32], scale and zero [count, groups]; made once for all products."""
        if self._int8 is None:
            self._int8 = quantise(self.numpy())
        return self._int8

    def quantised(self) -> tuple[NDArray[np.int8], F32, I32]:
        """The same with q as [count, width]."""
        q, scale, zero = self.int8()
        return q.reshape(self.count, self.width), scale, zero


class Batch:
    """The rows of one step, all int32: ids, position, sequence [rows], page_table [sequences, pages],
    output_rows [outputs]."""

    def __init__(self, ids: I32, position: I32, sequence: I32, page_table: I32, output_rows: I32) -> None:
        self.ids, self.position, self.sequence = ids.copy(), position.copy(), sequence.copy()
        self.page_table, self.output_rows = page_table.copy(), output_rows.copy()
        self.rows = len(ids)

    @staticmethod
    def of_slices(slices: Sequence[tuple[Sequence[int], int, Sequence[int], int]]) -> Batch:
        """From one tuple for each sequence: new ids, position of the first, pages, last rows wanted."""
        table = np.zeros((len(slices), max(len(pages) for _, _, pages, _ in slices)), np.int32)
        position: list[int] = []
        sequence: list[int] = []
        outputs: list[int] = []
        for i, (ids, start, pages, num_outputs) in enumerate(slices):
            table[i, : len(pages)] = pages
            position += range(start, start + len(ids))
            sequence += [i] * len(ids)
            outputs += range(len(position) - num_outputs, len(position))
        all_ids = [token_id for ids, _, _, _ in slices for token_id in ids]
        ids_, position_, sequence_, outputs_ = (
            np.array(x, np.int32) for x in (all_ids, position, sequence, outputs)
        )
        return Batch(ids_, position_, sequence_, table, outputs_)


class RowOperation:
    """From row to row: called on its own, or bound in front of a product."""

    def __call__(self, x: Rows, out: Rows) -> None:
        raise NotImplementedError


class RMSNorm(RowOperation):
    """out = x * factor * weight, factor = 1 / sqrt(mean(x^2) + eps)."""

    def __init__(self, cpu: Cpu, weight: F32, eps: float) -> None:
        self.weight, self.eps = weight.copy(), eps

    def __call__(self, x: Rows, out: Rows) -> None:
        out.fill(rms_norm(x.numpy(), self.weight, self.eps))


class LayerNorm(RowOperation):
    """out = (x - mean) * factor * weight + bias, factor = 1 / sqrt(mean((x - mean)^2) + eps)."""

    def __init__(self, cpu: Cpu, weight: F32, bias: F32, eps: float) -> None:
        self.weight, self.bias, self.eps = weight.copy(), bias.copy(), f32(eps)

    def __call__(self, x: Rows, out: Rows) -> None:
        with np.errstate(all="ignore"):
            centred = x.numpy() - (lane_sum(x.numpy()) / f32(x.width))[:, None]
            factor = f32(1) / np.sqrt(sum_of_products(centred, centred) / f32(x.width) + self.eps)
            out.fill(fma(centred * factor[:, None], self.weight, self.bias))


class AddNorm:
    """out += RMSNorm(x)."""

    def __init__(self, cpu: Cpu, weight: F32, eps: float) -> None:
        self.weight, self.eps = weight.copy(), eps

    def __call__(self, x: Rows, out: Rows) -> None:
        with np.errstate(all="ignore"):
            out.fill(out.numpy() + rms_norm(x.numpy(), self.weight, self.eps))


class SwiGLU(RowOperation):
    """out = silu(gate) * up, silu(g) = g / (1 + e^-g); a row is [gates | ups]."""

    def __init__(self, cpu: Cpu) -> None: ...

    def __call__(self, x: Rows, out: Rows) -> None:
        gate, up = np.split(x.numpy(), 2, axis=1)
        with np.errstate(all="ignore"):
            out.fill(times_sigmoid(gate, gate) * up)


class GeGLU(RowOperation):
    """out = gelu(gate) * up; a row is [gates | ups]."""

    def __init__(self, cpu: Cpu) -> None: ...

    def __call__(self, x: Rows, out: Rows) -> None:
        gate, up = np.split(x.numpy(), 2, axis=1)
        with np.errstate(all="ignore"):
            out.fill(gelu(gate) * up)


class GELU(RowOperation):
    """out = gelu(x), by tanh."""

    def __init__(self, cpu: Cpu) -> None: ...

    def __call__(self, x: Rows, out: Rows) -> None:
        with np.errstate(all="ignore"):
            out.fill(gelu(x.numpy()))


class PositionEmbedding:
    """x += table[position]."""

    def __init__(self, cpu: Cpu, table: F32) -> None:
        self.table = table

    def __call__(self, batch: Batch, x: Rows) -> None:
        with np.errstate(all="ignore"):
            x.fill(x.numpy() + self.table[batch.position])


def rms_norm(x: F32, weight: F32, eps: float) -> F32:
    """x / sqrt(mean(x^2) + eps) * weight over the last axis."""
    with np.errstate(all="ignore"):
        factor = f32(1) / np.sqrt(sum_of_products(x, x) / f32(x.shape[-1]) + f32(eps))
        normed: F32 = x * factor[..., None] * weight
    return normed


def times_sigmoid(x: F32, y: F32) -> F32:
    """x / (1 + e^-y)"""
    return x / (f32(1) + exp(f32(0) - y))


def gelu(x: F32) -> F32:
    """x (1 + tanh(y)) / 2 with y = sqrt(2 / pi) (x + 0.044715 x^3): x times the sigmoid of 2 y."""
    return times_sigmoid(x, x * fma(x * x, f32(0.0713548162726), f32(1.5957691216057)))


def take_outputs(x: Rows, batch: Batch, out: Rows) -> None:
    """out = x[output_rows]."""
    out.fill(x.numpy()[batch.output_rows])
