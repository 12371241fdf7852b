"""The kernels in numpy: the names and calls of `_native`, the same bits, made to be read.

A model bound to this module instead of `_native` computes the same numbers, some hundred times slower; tests
compare the two. Each class says its formula and `__call__` is that formula, in order. Left out: checks,
threads, speed. The arithmetic (fused multiply-add, e^x, sums, quantisation, blocks of a file) is in
`reference_numbers.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokenglass.kernels.reference_numbers import (
    F32,
    FORMATS,
    GROUP,
    LANES,
    Blocks,
    exp,
    f32,
    fma,
    lane_sum,
    quantise,
    sine_cosine,
    sum_of_products,
    unpack,
)

PAGE = 16  # positions in a KV page
SPAN = 256  # absolute positions in one softmax partial
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


class Matrix:
    """Weights [rows, cols] from the blocks of a file; order[i] is the file's row that becomes row i."""

    def __init__(
        self, cpu: Cpu, format: str, raw: NDArray[np.uint8], rows: int, cols: int, order: I32 | None = None
    ) -> None:
        self.rows, self.cols = rows, cols
        if order is not None:
            raw = raw.reshape(rows, -1)[order].reshape(-1)
        self.weights = unpack(format, raw, rows, cols)
        self.num_bytes = round(-(-rows // LANES) * LANES * cols * FORMATS[format])  # of the panels in C++

    def columns(self) -> Iterator[F32]:
        """The weights as float32, column by column, each [rows]."""
        return self.weights.columns() if isinstance(self.weights, Blocks) else iter(self.weights.T)


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
        """q [count, groups, 32], scale and sum of q [count, groups]; made once for all products."""
        if self._int8 is None:
            self._int8 = quantise(self.numpy())
        return self._int8

    def quantised(self) -> tuple[NDArray[np.int8], F32, I32]:
        """The same with q as [count, width]."""
        q, scale, total = self.int8()
        return q.reshape(self.count, self.width), scale, total


class KVPages:
    """Keys and values of every layer, float16 (`half`) or float32. A page of one layer and KV head is

    K [head_dim, 16 positions] | V [16 positions, head_dim]
    """

    def __init__(self, layers: int, pages: int, kv_heads: int, head_dim: int, half: bool) -> None:
        self.layers, self.pages, self.kv_heads, self.head_dim, self.half = (
            layers,
            pages,
            kv_heads,
            head_dim,
            half,
        )
        self._data: NDArray[Any] = np.zeros(
            (layers, pages, kv_heads, 2, PAGE * head_dim), np.float16 if half else np.float32
        )
        self.page_bytes = self._data[:, 0].nbytes

    def keys(self, layer: int) -> NDArray[Any]:
        """A view, [pages, kv_heads, head_dim, 16]."""
        return self._data[layer, :, :, 0].reshape(self.pages, self.kv_heads, self.head_dim, PAGE)

    def values(self, layer: int) -> NDArray[Any]:
        """A view, [pages, kv_heads, 16, head_dim]."""
        return self._data[layer, :, :, 1].reshape(self.pages, self.kv_heads, PAGE, self.head_dim)

    def raw(self, layer: int) -> NDArray[np.uint8]:
        """A view of one layer's bytes."""
        layer_bytes: NDArray[np.uint8] = self._data[layer].reshape(-1).view(np.uint8)
        return layer_bytes


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


class Embedding:
    """out[i] = matrix[ids[i]], dequantised."""

    def __init__(self, cpu: Cpu, matrix: Matrix) -> None:
        self._table = np.stack(list(matrix.columns()), axis=1)

    def __call__(self, batch: Batch, out: Rows) -> None:
        out.fill(self._table[batch.ids])


class Linear:
    """out = x W^T for one or several matrices side by side; `add`: out += it. Every output is one chain:

    float  for each column:           acc = fma(w, x, acc)
    int8   for each group of columns: s = sum of code * q, exact;  acc = fma(s * scale_x, scale, acc)
                                      with a minimum also          acc = fma(minimum, sum_x * scale_x, acc)

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

    def __call__(self, x: Rows, out: Rows) -> None:
        if self.before and self.scratch:
            self.before(x, self.scratch)
            x = self.scratch
        product = np.concatenate([self._product(matrix, x) for matrix in self.matrices], axis=1)
        out.fill(out.numpy() + product if self.add else product)

    def _product(self, matrix: Matrix, x: Rows) -> F32:
        """[rows, outputs of this matrix]."""
        acc = np.zeros((x.count, matrix.rows), np.float32)
        w = matrix.weights
        if self.exact or not isinstance(w, Blocks):
            for w_column, x_column in zip(matrix.columns(), x.numpy().T, strict=True):
                acc = fma(w_column, x_column[:, None], acc)
            return acc
        q, scale, total = x.int8()
        for g in range(matrix.cols // GROUP):
            scale_x, sum_x = scale[:, g, None], total[:, g, None].astype(np.float32)  # [rows, 1]
            # Whole numbers below 2^24: float32 is exact here, in whatever order the library adds.
            s = q[:, g].astype(np.float32) @ w.code[g].astype(np.float32).T  # [rows, outputs]
            with np.errstate(invalid="ignore"):
                acc = fma(s * scale_x, w.scale[g], acc)
                if w.minimum is not None:
                    acc = fma(w.minimum[g], sum_x * scale_x, acc)
        return acc


class RowOperation:
    """From row to row: called on its own, or bound in front of a product."""

    def __call__(self, x: Rows, out: Rows) -> None:
        raise NotImplementedError


class RMSNorm(RowOperation):
    """out = x * factor * weight, factor = 1 / sqrt(mean(x^2) + eps)."""

    def __init__(self, cpu: Cpu, weight: F32, eps: float) -> None:
        self.weight, self.eps = weight.copy(), f32(eps)

    def __call__(self, x: Rows, out: Rows) -> None:
        values = x.numpy()
        with np.errstate(all="ignore"):
            factor = f32(1) / np.sqrt(sum_of_products(values, values) / f32(x.width) + self.eps)
            out.fill(values * factor[:, None] * self.weight)


class SwiGLU(RowOperation):
    """out = silu(gate) * up, silu(g) = g / (1 + e^-g); a row is [gates | ups]."""

    def __init__(self, cpu: Cpu) -> None: ...

    def __call__(self, x: Rows, out: Rows) -> None:
        gate, up = np.split(x.numpy(), 2, axis=1)
        with np.errstate(all="ignore"):
            out.fill(gate / (f32(1) + exp(f32(0) - gate)) * up)


class RopeStore:
    """Turns pairs (a, b) = (head[i], head[i + head_dim / 2]) of q and k by the angle position * frequency[i]:

    a' = a cos - b sin,  b' = b cos + a sin

    Then stores k and v in the pages. What float16 cannot hold is stored as +-65504: infinity would make NaN
    later.
    """

    def __init__(self, cpu: Cpu, cos_sin: F32, pages: KVPages, layer: int, heads: int) -> None:
        self.cos_sin, self.pages, self.layer, self.heads = cos_sin, pages, layer, heads

    def __call__(self, qkv: Rows, batch: Batch) -> None:
        pages, rows = self.pages, batch.rows
        heads = qkv.numpy().reshape(rows, -1, pages.head_dim)  # q heads, k heads, v heads
        q_and_k, v = np.split(heads, [self.heads + pages.kv_heads], axis=1)
        cos, sin = np.split(self.cos_sin[batch.position], 2, axis=1)  # [rows, 1, head_dim / 2]
        a, b = np.split(q_and_k, 2, axis=2)
        with np.errstate(all="ignore"):
            q_and_k = np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=2)
        qkv.fill(np.concatenate([q_and_k, v], axis=1).reshape(rows, -1))

        page, slot = batch.page_table[batch.sequence, batch.position // PAGE], batch.position % PAGE
        pages.keys(self.layer)[page, :, :, slot] = self._stored(q_and_k[:, self.heads :])
        pages.values(self.layer)[page, :, slot] = self._stored(v)

    def _stored(self, x: F32) -> NDArray[Any]:
        if not self.pages.half:
            return x
        return np.clip(x, -65504, 65504).astype(np.float16)


class Partial(NamedTuple):
    """Softmax over some positions, unfinished: the largest score m, the sum of e^(score - m) [rows, kv_heads,
    queries], and the sum of e^(score - m) * v [rows, kv_heads, queries, head_dim]."""

    largest: F32
    total: F32
    values: F32


class Attention:
    """out = softmax(scale * q K^T) V over the positions up to each row's own, read from the pages.

    The positions are cut into spans of 256 *absolute* positions. Each span gives a `Partial`; these merge
    from left to right and the result is values / total. So a row depends on its own position and the pages,
    on nothing else.
    """

    def __init__(
        self,
        cpu: Cpu,
        pages: KVPages,
        layer: int,
        heads: int,
        context: int,
        scale: float,
        before: RopeStore | None = None,
    ) -> None:
        self.pages, self.layer, self.heads, self.scale, self.before = pages, layer, heads, f32(scale), before

    def __call__(self, qkv: Rows, batch: Batch, out: Rows) -> None:
        if self.before:
            self.before(qkv, batch)
        kv_heads, dim = self.pages.kv_heads, self.pages.head_dim
        q = qkv.numpy()[:, : self.heads * dim].reshape(
            batch.rows, kv_heads, -1, dim
        )  # query heads by KV head
        result = self._partial(q, batch, start=0)
        for start in range(SPAN, int(batch.position.max()) + 1, SPAN):
            merged = merge(result, self._partial(q, batch, start))
            reaches = (batch.position >= start)[:, None, None]  # the rows that see into this span
            result = Partial(
                np.where(reaches, merged.largest, result.largest),
                np.where(reaches, merged.total, result.total),
                np.where(reaches[..., None], merged.values, result.values),
            )
        with np.errstate(all="ignore"):
            out.fill((result.values / result.total[..., None]).reshape(batch.rows, -1))

    def _partial(self, q: F32, batch: Batch, start: int) -> Partial:
        rows, kv_heads, queries, dim = q.shape
        last = min(int(batch.position.max()), start + SPAN - 1)
        pages = batch.page_table[
            batch.sequence, start // PAGE : last // PAGE + 1
        ]  # [rows, pages of the span]
        k = self.pages.keys(self.layer)[pages].astype(np.float32)  # [rows, pages, kv_heads, head_dim, 16]
        v = self.pages.values(self.layer)[pages].astype(np.float32)  # [rows, pages, kv_heads, 16, head_dim]
        k = k.transpose(0, 2, 3, 1, 4).reshape(
            rows, kv_heads, dim, -1
        )  # [rows, kv_heads, head_dim, positions]
        v = v.transpose(0, 2, 1, 3, 4).reshape(
            rows, kv_heads, -1, dim
        )  # [rows, kv_heads, positions, head_dim]
        num = k.shape[3]
        seen = start + np.arange(num) <= batch.position[:, None, None, None]  # [rows, 1, 1, positions]

        scores = np.zeros((rows, kv_heads, queries, num), np.float32)
        for d in range(dim):  # the score of a key is one chain over head_dim
            scores = fma(k[:, :, None, d], q[..., d, None], scores)
        with np.errstate(all="ignore"):
            scores = np.where(seen, scores * self.scale, f32(-np.inf))
            largest = np.fmax.reduce(scores, axis=-1, initial=-np.inf)  # NaN is never the largest
            weights = exp(scores - largest[..., None])
        values = np.zeros_like(q)
        for p in range(num):  # a dimension of the result is one chain over the positions
            added = fma(v[:, :, None, p], weights[..., p, None], values)
            values = np.where(seen[..., p, None], added, values)
        return Partial(largest, lane_sum(weights), values)


def merge(left: Partial, right: Partial) -> Partial:
    """Both partials brought to the larger of their `largest`, then added."""
    largest = np.where(left.largest > right.largest, left.largest, right.largest)
    with np.errstate(all="ignore"):
        a, b = exp(left.largest - largest), exp(right.largest - largest)
        return Partial(
            largest,
            fma(left.total, a, right.total * b),
            fma(left.values, a[..., None], right.values * b[..., None]),
        )


def take_outputs(x: Rows, batch: Batch, out: Rows) -> None:
    """out = x[output_rows]."""
    out.fill(x.numpy()[batch.output_rows])


def rope_table(inverse_frequency: F32, context: int) -> F32:
    """cos and sin of position * inverse_frequency, [context, 2, head_dim / 2].

    The angle is a float32 product, as in training; its cosine and sine are computed in float64, then rounded.
    """
    angle = np.arange(context, dtype=np.float32)[:, None] * inverse_frequency
    sine, cosine = sine_cosine(angle.astype(np.float64))
    return np.stack([cosine, sine], axis=1).astype(np.float32)


def has_panels(format: str) -> bool:
    """Whether blocks of this GGUF type are multiplied as they are."""
    return format in FORMATS
