"""What is done to q and k before they are stored: norms of heads, rotation of all, some or no dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kernels.support import F32, ISAS, Ops, activations, assert_same_bits, filled, int32, native, twin

HEADS, KV_HEADS, DIM, ROWS = 4, 2, 48, 40
WIDTH = (HEADS + 2 * KV_HEADS) * DIM


def stored(ops: Ops, cpu: Any, qkv: F32, half: int | None, norms: tuple[F32 | None, F32 | None]) -> list[F32]:
    """q, k, v after the operation, and the pages: rotation of 2 * half dimensions."""
    cos_sin = None
    if half:
        cos_sin = ops.RopeTable((100.0 ** -(np.arange(half) / half)).astype(np.float32), 64)
    pages = ops.KVPages(1, 3, KV_HEADS, DIM, "f32")
    rows, position = filled(ops, qkv), np.arange(ROWS, dtype=np.int32)
    batch = ops.Batch(position, position, 0 * position, int32(2, 0, 1)[None], int32(0))
    ops.RopeStore(cpu, cos_sin, pages, 0, HEADS, *norms, 1e-6)(rows, batch)
    return [rows.numpy().copy(), pages.raw(0).view(np.float32).copy()]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("half", [None, 8, 9, 16, 24])
@pytest.mark.parametrize("with_norms", [False, True])
def test_same_bits(with_norms: bool, half: int | None, isa: str) -> None:
    rng = np.random.default_rng(0)
    qkv, weights = activations(rng, ROWS, WIDTH), activations(rng, 2, DIM)
    norms = (weights[0], weights[1]) if with_norms else (None, None)
    expected = stored(*twin(), qkv, half, norms)
    for num_threads in (1, 3):
        for actual, wanted in zip(stored(*native(isa, num_threads), qkv, half, norms), expected, strict=True):
            assert_same_bits(actual, wanted)


def test_without_rotation_and_norms_nothing_changes() -> None:
    qkv = activations(np.random.default_rng(0), ROWS, WIDTH)
    assert_same_bits(stored(*native(ISAS[0]), qkv, None, (None, None))[0], qkv)


def test_the_truth_in_float64() -> None:
    """A norm of each head, then dimensions i and i + 8 turned, those from 16 on left."""
    rng = np.random.default_rng(0)
    qkv, (q_norm, k_norm) = activations(rng, ROWS, WIDTH), activations(rng, 2, DIM)
    q, k, v = np.split(qkv.reshape(ROWS, -1, DIM).astype(np.float64), [HEADS, HEADS + KV_HEADS], axis=1)
    angle = np.arange(ROWS)[:, None, None] * 100.0 ** -(np.arange(8) / 8)

    def made(x: Any, weight: F32) -> Any:
        x = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6) * weight
        turned = (x[..., :8] + 1j * x[..., 8:16]) * np.exp(1j * angle)
        return np.concatenate([turned.real, turned.imag, x[..., 16:]], axis=-1)

    wanted = np.concatenate([made(q, q_norm), made(k, k_norm), v], axis=1).reshape(ROWS, -1)
    actual = stored(*native(ISAS[0]), qkv, 8, (q_norm, k_norm))[0]
    np.testing.assert_allclose(actual, wanted, atol=1e-5)


def test_a_norm_of_the_keys_alone() -> None:
    qkv = activations(np.random.default_rng(0), ROWS, WIDTH)
    rows = stored(*native(ISAS[0]), qkv, None, (None, np.ones(DIM, np.float32)))[0]
    end_q, end_k = HEADS * DIM, (HEADS + KV_HEADS) * DIM
    assert_same_bits(rows[:, :end_q], qkv[:, :end_q])
    assert_same_bits(rows[:, end_k:], qkv[:, end_k:])
    keys = rows[:, end_q:end_k].reshape(ROWS, KV_HEADS, DIM)
    np.testing.assert_allclose((keys**2).mean(axis=-1), 1, rtol=1e-4)
