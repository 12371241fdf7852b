"""Windows, soft caps and the 8-bit cache: against plain softmax in float64, and in bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.kernels.support import F32, ISAS, activations, assert_same_bits, filled, int32, native, twin
from tests.kernels.test_attention import KINDS, Heads, Layer, check, chunks, positions

F64 = NDArray[np.float64]


def truth(heads: Heads) -> F64:
    """Attention of every row of the one sequence, [positions, heads * head_dim]."""
    layer = Layer(heads, *twin())
    values = layer.values[0].astype(np.float32)
    rotated = filled(layer.ops, values)
    position = np.arange(heads.length, dtype=np.int32)
    layer.store(rotated, layer.ops.Batch(position, position, 0 * position, layer.table, int32(0)))
    rows = rotated.numpy().astype(np.float64).reshape(heads.length, -1, heads.head_dim)
    q, k, v = np.split(rows, [heads.heads, heads.heads + heads.kv_heads], axis=1)
    group = heads.heads // heads.kv_heads
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    scores = np.einsum("phd,khd->hpk", q, k) * heads.head_dim**-0.5
    if heads.soft_cap:
        scores = heads.soft_cap * np.tanh(scores / heads.soft_cap)
    distance = position[:, None] - position
    seen = (distance >= 0) & (distance < (heads.window or heads.length))
    scores = np.where(seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    result: F64 = np.einsum("hpk,khd->phd", weights, v).reshape(heads.length, -1)
    return result


def attended(heads: Heads, ops: Any, cpu: Any) -> F32:
    layer = Layer(heads, ops, cpu)
    return np.concatenate([layer.step(rows) for rows in chunks(positions(heads), 100)])


@pytest.mark.parametrize(
    "window", [0, 1, 2, 15, 16, 17, 100, 255, 256, 257, 300, 511, 512, 513, 599, 600, 601]
)
def test_a_window_is_the_truth_at_every_position(window: int) -> None:
    heads = Heads(heads=2, head_dim=32, kv="f32", window=window, size=1.0)
    np.testing.assert_allclose(attended(heads, *native(ISAS[0])), truth(heads), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("soft_cap", [0.5, 3.0, 50.0])
@pytest.mark.parametrize("window", [0, 40])
def test_a_soft_cap_is_the_truth(window: int, soft_cap: float) -> None:
    heads = Heads(heads=2, head_dim=32, kv="f32", window=window, soft_cap=soft_cap, length=300)
    np.testing.assert_allclose(attended(heads, *native(ISAS[0])), truth(heads), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("head_dim", [16, 48, 64])
def test_eight_bits_are_near_the_truth(head_dim: int) -> None:
    heads = Heads(heads=4, kv_heads=2, head_dim=head_dim, kv="q8", length=300, size=1.0)
    error = attended(heads, *native(ISAS[0])) - truth(heads)
    assert np.sqrt((error**2).mean()) < 0.01
    assert np.abs(error).max() < 0.06


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kv", KINDS)
@pytest.mark.parametrize("window", [1, 16, 17, 255, 256, 257, 300, 512])
def test_windows_in_any_chunks(window: int, kv: str, isa: str) -> None:
    heads = Heads(heads=3, kv_heads=1, kv=kv, window=window)
    for chunk_len in (1, 16, 257, 600):
        check(heads, chunks(positions(heads), chunk_len), isa)
    check(Heads(2, 1, 16, kv, window=window, soft_cap=5.0), chunks(positions(heads), 90), isa, num_threads=3)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kv", ["f16", "q8"])
def test_what_lies_before_a_window_changes_nothing(kv: str, isa: str) -> None:
    heads = Heads(heads=2, kv=kv, window=100)
    layer = Layer(heads, *native(isa))
    layer.step(positions(heads))
    last = [(0, p) for p in range(590, 600)]
    wanted = layer.step(last)
    page = len(layer.pages.raw(1)) // layer.pages.pages
    for old in heads.table[0, : (590 - 99) // 16]:
        layer.pages.raw(1)[old * page : (old + 1) * page] = 0xFF  # NaN
    assert_same_bits(layer.step(last), wanted)


@pytest.mark.parametrize("isa", ISAS)
def test_a_broken_number_stays_visible_in_eight_bits(isa: str) -> None:
    """NaN in one dimension breaks the 32 that share its scale, of this position alone; infinity is 65504."""
    x = activations(np.random.default_rng(0), 3, 3 * 64)
    x[1, 130], x[2, 140] = np.nan, np.inf
    results = []
    for ops, cpu in (twin(), native(isa)):
        pages = ops.KVPages(1, 3, 1, 64, "q8")
        rows = np.arange(3, dtype=np.int32)
        batch = ops.Batch(rows, 0 * rows, rows, rows[:, None].copy(), int32(0))
        out, qkv = ops.Rows(3, 64), filled(ops, x)
        ops.Attention(cpu, pages, 0, 1, 16, 0.1, ops.RopeStore(cpu, None, pages, 0, 1))(qkv, batch, out)
        results.append(out.numpy().copy())
    assert_same_bits(results[1], results[0])
    assert np.isnan(results[1][1, :32]).all()
    assert np.isfinite(np.delete(results[1], np.s_[64:96])).all()
    np.testing.assert_allclose(results[1][2, 12], 65504, rtol=1e-3)


def test_eight_bits_take_half_of_sixteen() -> None:
    ops, _ = native(ISAS[0])
    half, whole = (ops.KVPages(2, 5, 3, 64, kind).page_bytes for kind in ("q8", "f16"))
    assert half / whole == (64 + 2 * 2) / 128
