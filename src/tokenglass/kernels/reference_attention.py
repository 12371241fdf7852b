"""Attention in numpy: pages of keys and values, rotation, and the softmax by spans of 256 positions.

Twins of `csrc/rope_store.h` and `csrc/attention.h`; the order of every sum is in docs/en/numerics.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokenglass.kernels.reference_numbers import F32, exp, f32, fma, lane_sum, sine_cosine
from tokenglass.kernels.reference_rows import PAGE, Batch, Cpu, Rows, rms_norm

SPAN = 256  # absolute positions in one softmax partial


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


class RopeStore:
    """First q_norm and k_norm: an RMS norm of each head. Then pairs (a, b) = (head[i], head[i + half]) of q
    and k turn by the angle position * frequency[i]:

    a' = a cos - b sin,  b' = b cos + a sin

    Last, k and v go to the pages. What float16 cannot hold is stored as +-65504: infinity would make NaN
    later.
    """

    def __init__(
        self,
        cpu: Cpu,
        cos_sin: F32 | None,
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
            cos, sin = np.split(self.cos_sin[batch.position], 2, axis=1)  # [rows, 1, half]
            q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        qkv.fill(np.concatenate([q, k, v], axis=1).reshape(rows, -1))

        page, slot = batch.page_table[batch.sequence, batch.position // PAGE], batch.position % PAGE
        pages.keys(self.layer)[page, :, :, slot] = self._stored(k)
        pages.values(self.layer)[page, :, slot] = self._stored(v)

    def _stored(self, x: F32) -> NDArray[Any]:
        if not self.pages.half:
            return x
        return np.clip(x, -65504, 65504).astype(np.float16)


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


def rope_table(inverse_frequency: F32, context: int) -> F32:
    """cos and sin of position * inverse_frequency, [context, 2, head_dim / 2].

    The angle is a float32 product, as in training; its cosine and sine are computed in float64, then rounded.
    """
    angle = np.arange(context, dtype=np.float32)[:, None] * inverse_frequency
    sine, cosine = sine_cosine(angle.astype(np.float64))
    return np.stack([cosine, sine], axis=1).astype(np.float32)
