"""Rotation, the store into pages and attention over them, in bits: pages, spans, chunks, neighbours.

Every cache starts full of NaN, so that one read beyond a row's position would show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.kernels.support import F32, ISAS, Ops, activations, assert_same_bits, filled, int32, native, twin

Row = tuple[int, int]  # sequence, position
CONTEXT = 1024
KINDS = ["f32", "f16", "q8"]


@dataclass(frozen=True)
class Heads:
    """Shape of one layer; q, k and v of every (sequence, position) are drawn from the seed, so any batch that
    holds a row gives it the same ones."""

    heads: int = 2
    kv_heads: int = 1
    head_dim: int = 16
    kv: str = "f16"
    num_sequences: int = 1
    length: int = 600  # positions of each sequence
    seed: int = 0
    size: float = 2.0  # of the numbers: the larger, the sharper the softmax
    window: int = 0
    soft_cap: float = 0.0

    @property
    def width(self) -> int:
        return (self.heads + 2 * self.kv_heads) * self.head_dim

    @property
    def table(self) -> NDArray[np.int32]:
        """Pages of the sequences, shuffled through the cache."""
        width = -(-self.length // 16)
        pages = np.random.default_rng(self.seed).permutation(self.num_sequences * width + 3)
        return pages[: self.num_sequences * width].astype(np.int32).reshape(self.num_sequences, width)

    def qkv(self) -> F32:
        """[sequences, positions, width]"""
        values = activations(np.random.default_rng(self.seed), self.num_sequences * self.length, self.width)
        return (values * np.float32(self.size)).reshape(self.num_sequences, self.length, self.width)


class Layer:
    """One layer's rotation, store and attention, bound to a cache full of `garbage`."""

    def __init__(self, heads: Heads, ops: Ops, cpu: Any, garbage: float = np.nan) -> None:
        self.shape, self.ops, self.values, self.table = heads, ops, heads.qkv(), heads.table
        num_pages = heads.table.size + 3
        self.pages = ops.KVPages(2, num_pages, heads.kv_heads, heads.head_dim, heads.kv)
        numbers(self.pages, heads.kv)[:] = garbage
        frequencies = 10_000.0 ** -(np.arange(heads.head_dim // 2) / (heads.head_dim // 2))
        rotations = ops.RopeTable(frequencies.astype(np.float32), CONTEXT)
        self.store = ops.RopeStore(cpu, rotations, self.pages, 1, heads.heads)
        scale = heads.head_dim**-0.5
        self.attention = ops.Attention(
            cpu, self.pages, 1, heads.heads, CONTEXT, scale, None, heads.window, heads.soft_cap
        )

    def step(self, rows: Sequence[Row]) -> F32:
        """Attention of these rows, [rows, heads * head_dim], after their keys and values were stored."""
        sequence, position = np.array(rows, np.int32).T.copy()
        batch = self.ops.Batch(np.zeros_like(position), position, sequence, self.table, int32(0))
        qkv = filled(self.ops, self.values[sequence, position])
        out = self.ops.Rows(len(rows), self.shape.heads * self.shape.head_dim)
        self.store(qkv, batch)
        self.attention(qkv, batch, out)
        result: F32 = out.numpy().copy()
        return result

    def stored(self) -> NDArray[Any]:
        """The cache's numbers, one layer; of q8 its bytes."""
        kv = self.shape.kv
        stored: NDArray[Any] = self.pages.raw(1) if kv == "q8" else numbers(self.pages, kv)
        return stored.copy()


def numbers(pages: Any, kv: str) -> NDArray[Any]:
    """A view of layer 1 as its floats; of q8 as its float16 scales, and codes that mean nothing as such."""
    view: NDArray[Any] = pages.raw(1).view(np.float32 if kv == "f32" else np.float16)
    return view


def positions(heads: Heads) -> list[Row]:
    """Every row of every sequence."""
    return [(s, p) for s in range(heads.num_sequences) for p in range(heads.length)]


@cache
def expected(heads: Heads) -> tuple[F32, NDArray[Any]]:
    """The twin's attention of every row, [sequences, positions, heads * head_dim], and its cache."""
    layer = Layer(heads, *twin())
    result = layer.step(positions(heads))
    return result.reshape(heads.num_sequences, heads.length, -1), layer.stored()


def check(heads: Heads, steps: Iterable[Sequence[Row]], isa: str, num_threads: int = 2) -> None:
    """These steps, one after the other, give the twin's bits for every row."""
    layer = Layer(heads, *native(isa, num_threads))
    wanted, stored = expected(heads)
    for rows in steps:
        actual = layer.step(rows)
        assert_same_bits(actual, np.stack([wanted[row] for row in rows]))
    assert_same_bits(layer.stored(), stored)


def chunks(rows: list[Row], chunk_len: int) -> list[list[Row]]:
    return [rows[i : i + chunk_len] for i in range(0, len(rows), chunk_len)]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kv", KINDS)
@pytest.mark.parametrize("chunk_len", [1, 15, 16, 17, 255, 256, 257, 600])
def test_prefill_gives_the_same_bits_however_it_is_cut(chunk_len: int, kv: str, isa: str) -> None:
    heads = Heads(kv=kv)
    for num_threads in (1, 2, 3):
        check(heads, chunks(positions(heads), chunk_len), isa, num_threads)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("head_dim", [16, 32, 48, 64, 128, 256])
@pytest.mark.parametrize("group", [1, 2, 3, 4, 7])
def test_every_head_size_and_group(group: int, head_dim: int, isa: str) -> None:
    for kv in KINDS:
        heads = Heads(2 * group, 2, head_dim, kv, length=37, seed=group)
        check(heads, chunks(positions(heads), 20), isa, num_threads=3)
        check(heads, chunks(positions(heads), 1), isa)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("num_threads", [1, 2, 8])
def test_steps_at_the_borders_of_pages_and_spans(num_threads: int, isa: str) -> None:
    """Few rows and many threads: each span is a block of its own, and the partials merge afterwards."""
    heads = Heads(heads=3, kv_heads=1, head_dim=48, length=515)
    layer = Layer(heads, *native(isa, num_threads))
    layer.step(positions(heads))
    wanted, _ = expected(heads)
    borders = [0, 1, 15, 16, 17, 31, 32, 254, 255, 256, 257, 271, 272, 273, 511, 512, 513, 514]
    for position in borders:
        assert_same_bits(layer.step([(0, position)])[0], wanted[0, position])
    for num_rows in (2, 3, 15, 16, 17):
        rows = [(0, position) for position in borders[-num_rows:]]
        assert_same_bits(layer.step(rows), np.stack([wanted[row] for row in rows]))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("num_threads", [1, 3])
def test_rows_of_several_sequences_in_any_order(num_threads: int, isa: str) -> None:
    heads = Heads(heads=6, kv_heads=2, num_sequences=3, length=270)
    order = np.random.default_rng(1).permutation(heads.num_sequences * heads.length)
    rows = [positions(heads)[i] for i in order]
    layer = Layer(heads, *native(isa, num_threads))
    layer.step(positions(heads))
    wanted, stored = expected(heads)
    for chunk in chunks(rows, 90):
        assert_same_bits(layer.step(chunk), np.stack([wanted[row] for row in chunk]))
    assert_same_bits(layer.stored(), stored)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("garbage", [0.0, np.inf, 6e4])
def test_pages_beyond_the_position_change_nothing(garbage: float, isa: str) -> None:
    heads = Heads(length=300)
    layer = Layer(heads, *native(isa), garbage)
    for rows in chunks(positions(heads), 100):
        actual = layer.step(rows)
        assert_same_bits(actual, np.stack([expected(heads)[0][row] for row in rows]))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("size", [0.0, 1e-30, 50.0, 1e5, 1e18, 1e30])
def test_numbers_of_any_size(size: float, isa: str) -> None:
    """Up to scores that overflow: float16 pages hold at most 65504, float32 pages give infinities and NaN."""
    for kv in KINDS:
        heads = Heads(2, 1, 16, kv, length=270, size=size)
        check(heads, chunks(positions(heads), 135), isa)


@pytest.mark.parametrize("isa", ISAS)
def test_a_broken_key_does_not_reach_rows_that_share_its_loads(isa: str) -> None:
    """Rows on both sides of a page border are computed together; a NaN score must mean the same to each."""
    heads = Heads(heads=1, length=40)
    results = []
    for ops, cpu in (twin(), native(isa)):
        layer = Layer(heads, ops, cpu)
        layer.step(positions(heads))
        page = layer.pages.raw(1).view(np.float16).reshape(-1, 2, 16, 16)[heads.table[0, 0]]
        page[0, :, 0] = np.nan  # every dimension of the key at position 0
        alone = np.concatenate([layer.step([(0, p)]) for p in range(10, 40)])
        assert_same_bits(layer.step([(0, p) for p in range(10, 40)]), alone)
        results.append(alone)
    assert_same_bits(results[1], results[0])
    assert np.isfinite(results[1]).all()


@pytest.mark.parametrize("isa", ISAS)
def test_every_float16_is_read_as_what_it_is(isa: str) -> None:
    """At position 0 the softmax is 1, so the output is the value itself: all 65,536, subnormals included."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(256, 256)
    ops, cpu = native(isa)
    pages = ops.KVPages(1, 1, 256, 256, "f16")
    pages.raw(0).view(np.float16).reshape(256, 2, 16, 256)[:, 1, 0] = halves
    batch = ops.Batch(int32(0), int32(0), int32(0), int32(0)[None], int32(0))
    out = ops.Rows(1, 1 << 16)
    qkv = filled(ops, np.zeros((1, 3 << 16), np.float32))
    ops.Attention(cpu, pages, 0, 256, 16, 1.0)(qkv, batch, out)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        wanted = halves.astype(np.float32).reshape(1, -1) + np.float32(0)  # a sum from +0 has no -0
    assert_same_bits(out.numpy(), wanted)


@pytest.mark.parametrize("isa", ISAS)
def test_every_kind_of_float_is_stored_to_the_nearest_float16(isa: str) -> None:
    """Values are stored as they come: ties, subnormals, NaN; what float16 cannot hold is +-65504."""
    rng = np.random.default_rng(0)
    edges = np.array(
        [0, 5.9604645e-8, 2.9802322e-8, 6.1e-5, 1, 2049, 2051, 65504, 65519.9, 65520, 1e9, np.inf]
    )
    near = np.nextafter(edges.astype(np.float32), np.float32(1))
    bits = rng.integers(0, 1 << 32, 16_000, dtype=np.uint32).view(np.float32)
    middles = (rng.integers(0, 1 << 18, 8_000, dtype=np.uint32) << 12).view(np.float32)  # ties, mostly
    halfway = rng.standard_normal(8_000).astype(np.float16).astype(np.float32) * np.float32(1 + 2**-11)
    numbers = [edges.astype(np.float32), -edges.astype(np.float32), near, bits, middles, halfway]
    values = np.concatenate(numbers)
    values = np.resize(values, (len(values) // 256, 256))
    num_rows = len(values)
    caches = []
    for ops, cpu in (native(isa), twin()):
        pages = ops.KVPages(1, -(-num_rows // 16), 1, 256, "f16")
        qkv = filled(ops, np.concatenate([np.zeros((num_rows, 512), np.float32), values], axis=1))
        rows = np.arange(num_rows, dtype=np.int32)
        batch = ops.Batch(rows, rows, 0 * rows, np.arange(pages.pages, dtype=np.int32)[None], int32(0))
        ops.RopeStore(cpu, ops.RopeTable(np.ones(128, np.float32), num_rows), pages, 0, 1)(qkv, batch)
        caches.append(pages.raw(0).view(np.float16).copy())
    assert_same_bits(*caches)
    assert not np.isinf(caches[0]).any()


@pytest.mark.parametrize("base", [10_000.0, 500_000.0, 1e6])
def test_rotations_are_the_same_bits_and_near_the_truth(base: float) -> None:
    frequencies = (base ** -(np.arange(32) / 32)).astype(np.float32)
    ops, _ = native(ISAS[0])
    table = ops.RopeTable(frequencies, 9000).numpy()
    assert_same_bits(table, twin()[0].RopeTable(frequencies, 9000).numpy())
    angle = (np.arange(9000, dtype=np.float32)[:, None] * frequencies).astype(np.float64)
    assert_same_bits(table, np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32))


layers = st.builds(
    lambda group, kv_heads, **rest: Heads(heads=group * kv_heads, kv_heads=kv_heads, **rest),
    group=st.integers(1, 8),
    kv_heads=st.integers(1, 3),
    head_dim=st.sampled_from([16, 32, 48, 64]),
    kv=st.sampled_from(KINDS),
    window=st.sampled_from([0, 0, 1, 2, 15, 16, 17, 33]),
    soft_cap=st.sampled_from([0.0, 0.0, 3.0]),
    num_sequences=st.integers(1, 3),
    length=st.integers(1, 70),
    seed=st.integers(0, 1 << 30),
    size=st.sampled_from([0.1, 2.0, 40.0]),
)


def check_everywhere(heads: Heads, chunk_len: int, num_threads: int, shuffle: bool) -> None:
    rows = positions(heads)
    wanted = Layer(heads, *twin()).step(rows).reshape(heads.num_sequences, heads.length, -1)
    order = np.random.default_rng(heads.seed).permutation(len(rows)) if shuffle else np.arange(len(rows))
    for isa in ISAS:
        layer = Layer(heads, *native(isa, num_threads))
        if shuffle:  # every key must be there before a row that sees it
            layer.step(rows)
        for chunk in chunks([rows[i] for i in order], chunk_len):
            assert_same_bits(layer.step(chunk), np.stack([wanted[row] for row in chunk]))


@given(layers, st.integers(1, 70), st.integers(1, 4), st.booleans())
@settings(max_examples=15, deadline=None)
def test_any_layer(heads: Heads, chunk_len: int, num_threads: int, shuffle: bool) -> None:
    check_everywhere(heads, chunk_len, num_threads, shuffle)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@given(layers, st.integers(1, 70), st.integers(1, 4), st.booleans())
@settings(max_examples=10_000, deadline=None)
def test_any_layer_ten_thousand_times(heads: Heads, chunk_len: int, num_threads: int, shuffle: bool) -> None:
    check_everywhere(heads, chunk_len, num_threads, shuffle)
