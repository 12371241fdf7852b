"""Attention in numpy: pages of keys and values, rotation, and the softmax by spans of 256 positions.

Twins of `csrc/rope_store.h` and `csrc/attention.h`; the order of every sum is in docs/en/numerics.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokenglass.kernels.reference_numbers import F32, exp, f32, fma, lane_sum, larger, sine_cosine, tanh
from tokenglass.kernels.reference_rows import I32, PAGE, Batch, Cpu, Rows, rms_norm

SPAN = 256  # absolute positions in one softmax partial


class KVPages:
    """Keys and values of every layer. A page of one layer and KV head is

    K [head_dim, 16 positions] | V [16 positions, head_dim]      of float32 (`f32`) or float16 (`f16`)

    and for `q8` each half is int8 codes in that order, then float16 scales [head_dim / 32, 16 positions].
    """

    def __init__(self, layers: int, pages: int, kv_heads: int, head_dim: int, kind: str) -> None:
        self.layers, self.pages, self.kv_heads, self.head_dim = layers, pages, kv_heads, head_dim
        self.kind = kind
        self.num_scales = -(-head_dim // 32) if kind == "q8" else 0
        dtype, num = {
            "f32": (np.float32, head_dim),
            "f16": (np.float16, head_dim),
            "q8": (np.int8, head_dim + 2 * self.num_scales),
        }[kind]
        self._data: NDArray[Any] = np.zeros((layers, pages, kv_heads, 2, PAGE * num), dtype)
        self.page_bytes = self._data[:, 0].nbytes

    def raw(self, layer: int) -> NDArray[np.uint8]:
        """A view of one layer's bytes."""
        layer_bytes: NDArray[np.uint8] = self._data[layer].reshape(-1).view(np.uint8)
        return layer_bytes

    def numbers(self, layer: int, half: int) -> NDArray[Any]:
        """A view, K (half 0) as [pages, kv_heads, head_dim, 16], V (1) as [pages, kv_heads, 16, head_dim]."""
        order = (PAGE, self.head_dim) if half else (self.head_dim, PAGE)
        part = self._data[layer, :, :, half, : PAGE * self.head_dim]
        return part.reshape(self.pages, self.kv_heads, *order)

    def scales(self, layer: int, half: int) -> NDArray[np.float16]:
        """A view of the scales of `q8`, [pages, kv_heads, head_dim / 32, 16]."""
        part = self._data[layer, :, :, half, PAGE * self.head_dim :].view(np.float16)
        return part.reshape(self.pages, self.kv_heads, self.num_scales, PAGE)

    def store(self, layer: int, half: int, page: I32, slot: I32, x: F32) -> None:
        """Row i of x [rows, kv_heads, head_dim] to K or V of page[i] at slot[i].

        What float16 cannot hold is stored as +-65504: infinity would make NaN later.
        """
        if self.kind != "f32":
            x = np.clip(x, -65504, 65504)
        if self.kind == "f16":
            x = x.astype(np.float16)
        if self.kind == "q8":
            x, scale = codes(x)
            self.scales(layer, half)[page, :, :, slot] = scale
        numbers = self.numbers(layer, half)
        if half:
            numbers[page, :, slot] = x
        else:
            numbers[page, :, :, slot] = x


def codes(x: F32) -> tuple[F32, NDArray[np.float16]]:
    """x ~= code * scale: whole numbers up to 127 in the shape of x, float16 [rows, kv_heads, head_dim / 32].

    In words: scale is max|x| / 127 of 32 dimensions, rounded to float16; code is x / scale to nearest. A NaN
    makes its scale NaN. (One scale for a whole head would lose more: a few dimensions of keys are often ten
    times as large as the others.)
    """
    result, scales = np.zeros_like(x), []
    with np.errstate(all="ignore"):
        for d in range(0, x.shape[-1], 32):
            part = x[..., d : d + 32]
            scale = (np.abs(part).max(axis=-1) / f32(127)).astype(np.float16)
            ratio = part / scale.astype(np.float32)[..., None]
            rounded = np.rint(np.minimum(larger(ratio, f32(-127)), f32(127)))
            result[..., d : d + 32] = np.where(scale[..., None] == 0, f32(0), rounded)
            scales.append(scale)
    return result, np.stack(scales, axis=-1)


class RopeTable:
    """cos and sin of position * inverse_frequency, times `factor`: [context, 2, head_dim / 2].

    The angle is a float32 product, as in training; its cosine and sine are computed in float64, then rounded.
    """

    def __init__(self, inverse_frequency: F32, context: int, factor: float = 1.0) -> None:
        angle = np.arange(context, dtype=np.float32)[:, None] * inverse_frequency
        sine, cosine = sine_cosine(angle.astype(np.float64))
        self.values = np.stack([cosine, sine], axis=1).astype(np.float32) * np.float32(factor)

    def __len__(self) -> int:
        return len(self.values)

    def numpy(self) -> F32:
        """The whole table."""
        return self.values


class RopeStore:
    """First q_norm and k_norm: an RMS norm of each head. Then pairs (a, b) = (head[i], head[i + half]) of q
    and k turn by the angle position * frequency[i]:

    a' = a cos - b sin,  b' = b cos + a sin

    Last, k and v go to the pages.
    """

    def __init__(
        self,
        cpu: Cpu,
        cos_sin: RopeTable | None,
        pages: KVPages,
        layer: int,
        heads: int,
        q_norm: F32 | None = None,
        k_norm: F32 | None = None,
        eps: float = 0.0,
    ) -> None:
        self.cos_sin, self.pages, self.layer, self.heads = cos_sin, pages, layer, heads
        self.q_norm, self.k_norm, self.eps = q_norm, k_norm, eps

    def __call__(self, qkv: Rows, batch: Batch) -> None:
        pages, rows = self.pages, batch.rows
        heads = qkv.numpy().reshape(rows, -1, pages.head_dim)
        q, k, v = np.split(heads, [self.heads, self.heads + pages.kv_heads], axis=1)
        if self.q_norm is not None:
            q = rms_norm(q, self.q_norm, self.eps)
        if self.k_norm is not None:
            k = rms_norm(k, self.k_norm, self.eps)
        if self.cos_sin is not None:
            cos, sin = np.split(self.cos_sin.values[batch.position], 2, axis=1)  # [rows, 1, half]
            q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        qkv.fill(np.concatenate([q, k, v], axis=1).reshape(rows, -1))

        page, slot = batch.page_table[batch.sequence, batch.position // PAGE], batch.position % PAGE
        pages.store(self.layer, 0, page, slot, k)
        pages.store(self.layer, 1, page, slot, v)


def rotated(heads: F32, cos: F32, sin: F32) -> F32:
    """heads [rows, heads, head_dim]: the first 2 * half dimensions turned by cos and sin [rows, 1, half]."""
    half = cos.shape[2]
    a, b, rest = np.split(heads, [half, 2 * half], axis=2)
    with np.errstate(all="ignore"):
        return np.concatenate([a * cos - b * sin, b * cos + a * sin, rest], axis=2)


class Partial(NamedTuple):
    """Softmax over some positions, unfinished: the largest score m, the sum of e^(score - m) [rows, kv_heads,
    queries], and the sum of e^(score - m) * v [rows, kv_heads, queries, head_dim]."""

    largest: F32
    total: F32
    values: F32


class Attention:
    """out = softmax(scale * q K^T) V over the positions up to each row's own, read from the pages.

    window: over the last so many only, 0 for all. soft_cap: score = soft_cap * tanh(score / soft_cap), 0 for
    none.

    The positions are cut into spans of 256 *absolute* positions. Each span that a row sees gives a `Partial`;
    these merge from left to right and the result is values / total. So a row depends on its own position and
    the pages, on nothing else.
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
        window: int = 0,
        soft_cap: float = 0.0,
    ) -> None:
        self.pages, self.layer, self.heads, self.scale, self.before = pages, layer, heads, f32(scale), before
        self.window, self.soft_cap = window, f32(soft_cap)

    def __call__(self, qkv: Rows, batch: Batch, out: Rows) -> None:
        if self.before:
            self.before(qkv, batch)
        kv_heads, dim = self.pages.kv_heads, self.pages.head_dim
        q = qkv.numpy()[:, : self.heads * dim].reshape(
            batch.rows, kv_heads, -1, dim
        )  # query heads by KV head
        first = np.maximum(batch.position - self.window + 1, 0) if self.window else 0 * batch.position
        result = self._partial(q, batch, first, start=0)
        for start in range(SPAN, int(batch.position.max()) + 1, SPAN):
            partial = self._partial(q, batch, first, start)
            sees = (batch.position >= start) & (first < start + SPAN)
            result = chosen(sees & (first < start), merge(result, partial), result)
            result = chosen(sees & (first >= start), partial, result)
        with np.errstate(all="ignore"):
            out.fill((result.values / result.total[..., None]).reshape(batch.rows, -1))

    def _partial(self, q: F32, batch: Batch, first: I32, start: int) -> Partial:
        rows, kv_heads, _, dim = q.shape
        last = min(int(batch.position.max()), start + SPAN - 1)
        pages = batch.page_table[
            batch.sequence, start // PAGE : last // PAGE + 1
        ]  # [rows, pages of the span]
        k, v = (self.pages.numbers(self.layer, half)[pages].astype(np.float32) for half in (0, 1))
        k = k.transpose(0, 2, 3, 1, 4).reshape(
            rows, kv_heads, dim, -1
        )  # [rows, kv_heads, head_dim, positions]
        v = v.transpose(0, 2, 1, 3, 4).reshape(
            rows, kv_heads, -1, dim
        )  # [rows, kv_heads, positions, head_dim]
        num = k.shape[3]
        position = start + np.arange(num)
        seen = (position <= batch.position[:, None]) & (position >= first[:, None])
        seen = seen[:, None, None]  # [rows, 1, 1, positions]

        scores = self._scores(q, k, pages)
        with np.errstate(all="ignore"):
            scores = scores * self.scale
            if self.soft_cap > 0:
                scores = self.soft_cap * tanh(scores / self.soft_cap)
            scores = np.where(seen, scores, f32(-np.inf))
            largest = np.fmax.reduce(scores, axis=-1, initial=-np.inf)  # NaN is never the largest
            weights = exp(scores - largest[..., None])
        values = np.zeros_like(q)
        for d, part in self._scaled(weights, pages):
            for p in range(num):  # a dimension of the result is one chain over the positions
                sum_so_far = values[..., d]
                added = fma(v[:, :, None, p, d], part[..., p, None], sum_so_far)
                values[..., d] = np.where(seen[..., p, None], added, sum_so_far)
        return Partial(largest, lane_sum(weights), values)

    def _scores(self, q: F32, k: F32, pages: I32) -> F32:
        """[rows, kv_heads, queries, positions]. The score of a key is one chain over head_dim; for `q8` one
        for each 32 dimensions, which joins the score times its scale."""
        rows, kv_heads, queries, dim = q.shape
        scores = np.zeros((rows, kv_heads, queries, k.shape[3]), np.float32)
        if self.pages.kind != "q8":
            for d in range(dim):
                scores = fma(k[:, :, None, d], q[..., d, None], scores)
            return scores
        scale = self._scales(0, pages)
        for group in range(self.pages.num_scales):
            part = np.zeros_like(scores)
            for d in range(32 * group, min(32 * group + 32, dim)):
                part = fma(k[:, :, None, d], q[..., d, None], part)
            scores = fma(part, scale[:, :, None, group], scores)
        return scores

    def _scaled(self, weights: F32, pages: I32) -> Iterator[tuple[slice, F32]]:
        """Dimensions, and the weights that their values are multiplied with: of `q8` times their scale."""
        if self.pages.kind != "q8":
            yield slice(None), weights
            return
        scale = self._scales(1, pages)
        for group in range(self.pages.num_scales):
            with np.errstate(all="ignore"):
                yield slice(32 * group, 32 * group + 32), weights * scale[:, :, None, group]

    def _scales(self, half: int, pages: I32) -> F32:
        """[rows, kv_heads, head_dim / 32, positions]"""
        scales = self.pages.scales(self.layer, half)[pages].astype(np.float32).transpose(0, 2, 3, 1, 4)
        return scales.reshape(*scales.shape[:3], -1)


def chosen(rows: NDArray[np.bool_], a: Partial, b: Partial) -> Partial:
    """Of each row a where `rows`, else b."""
    which = rows[:, None, None]
    return Partial(
        np.where(which, a.largest, b.largest),
        np.where(which, a.total, b.total),
        np.where(which[..., None], a.values, b.values),
    )


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
