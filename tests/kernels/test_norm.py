"""RMS norm and SwiGLU in bits, over every width of tail and the whole range of float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.support import F32, ISAS, Ops, activations, assert_same_bits, filled, native, twin


def normed(ops: Ops, cpu: Any, x: F32, weight: F32, eps: float) -> F32:
    out = ops.Rows(*x.shape)
    ops.RMSNorm(cpu, weight, eps)(filled(ops, x), out)
    result: F32 = out.numpy().copy()
    return result


def activated(ops: Ops, cpu: Any, gate_up: F32) -> F32:
    out = ops.Rows(len(gate_up), gate_up.shape[1] // 2)
    ops.SwiGLU(cpu)(filled(ops, gate_up), out)
    result: F32 = out.numpy().copy()
    return result


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("width", [1, 15, 16, 17, 31, 33, 576, 1001])
@pytest.mark.parametrize("kind", ["normal", "zero", "spike", "tiny", "broken"])
def test_norm_of_every_width(kind: str, width: int, isa: str) -> None:
    rng = np.random.default_rng(width)
    weight = activations(rng, 1, width)[0]
    x = activations(rng, 65, width, kind)
    wanted = normed(*twin(), x, weight, 1e-5)
    for num_rows in (1, 15, 16, 65):  # few rows stay on the caller's thread
        for num_threads in (1, 3):
            assert_same_bits(normed(*native(isa, num_threads), x[:num_rows], weight, 1e-5), wanted[:num_rows])


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("size", [1e-30, 1e15, 1e25])
def test_norm_whose_squares_leave_the_range(size: float, isa: str) -> None:
    x = activations(np.random.default_rng(0), 3, 48) * np.float32(size)
    weight = np.ones(48, np.float32)
    for eps in (0.0, 1e-6):
        assert_same_bits(normed(*native(isa), x, weight, eps), normed(*twin(), x, weight, eps))


@pytest.mark.parametrize("isa", ISAS)
def test_norm_in_place(isa: str) -> None:
    x, weight = activations(np.random.default_rng(0), 20, 33), np.full(33, 2, np.float32)
    ops, cpu = native(isa)
    rows = filled(ops, x)
    ops.RMSNorm(cpu, weight, 1e-5)(rows, rows)
    assert_same_bits(rows.numpy(), normed(*twin(), x, weight, 1e-5))


def test_norm_agrees_with_float64() -> None:
    x = activations(np.random.default_rng(0), 8, 576)
    wanted = x / np.sqrt((x.astype(np.float64) ** 2).mean(axis=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(normed(*native(ISAS[0]), x, np.ones(576, np.float32), 1e-5), wanted, rtol=1e-6)


@pytest.mark.parametrize("isa", ISAS)
def test_swiglu_over_the_whole_range(isa: str) -> None:
    """e^-gate from 0 to its largest, and the gates at which it stops."""
    special = [0.0, -0.0, 87.33654, 87.3366, 88.0, 88.1, 1e30, np.inf]
    gates = np.concatenate([np.linspace(-110, 110, 20_001), special, [-x for x in special], [np.nan]])
    gates = np.resize(gates.astype(np.float32), (40, 512))
    up = activations(np.random.default_rng(0), 40, 512)
    gate_up = np.concatenate([gates, up], axis=1)
    wanted = activated(*twin(), gate_up)
    for num_rows in (1, 3, 4, 40):
        assert_same_bits(activated(*native(isa, 3), gate_up[:num_rows]), wanted[:num_rows])
    is_plain = np.abs(gates) < 80
    gate = gates[is_plain].astype(np.float64)
    np.testing.assert_allclose(wanted[is_plain], gate / (1 + np.exp(-gate)) * up[is_plain], rtol=4e-7)


def check_everywhere(num_rows: int, width: int, seed: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    x, weight = activations(rng, num_rows, width) * np.float32(size), activations(rng, 1, width)[0]
    gate_up = activations(rng, num_rows, 32 * width) * np.float32(size)
    wanted = normed(*twin(), x, weight, 1e-6), activated(*twin(), gate_up)
    for isa in ISAS:
        ops, cpu = native(isa)
        assert_same_bits(normed(ops, cpu, x, weight, 1e-6), wanted[0])
        assert_same_bits(activated(ops, cpu, gate_up), wanted[1])


shapes = {
    "num_rows": st.integers(1, 40),
    "width": st.integers(1, 100),
    "seed": st.integers(0, 1 << 30),
    "size": st.sampled_from([1e-3, 1.0, 30.0, 1e4]),
}


@given(**shapes)
@settings(max_examples=20, deadline=None)
def test_any_rows(num_rows: int, width: int, seed: int, size: float) -> None:
    check_everywhere(num_rows, width, seed, size)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@given(**shapes)
@settings(max_examples=10_000, deadline=None)
def test_any_rows_ten_thousand_times(num_rows: int, width: int, seed: int, size: float) -> None:
    check_everywhere(num_rows, width, seed, size)
