"""LayerNorm, GELU, GeGLU, the norm that adds, learned positions, scaled embedding: in bits, and the truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.support import F32, ISAS, Ops, activations, assert_same_bits, filled, int32, native, twin
from tests.kernels.support import raw_weights as raw

Make = Callable[[Ops, Any], Any]


def applied(ops: Ops, cpu: Any, make: Make, x: F32, out: F32) -> F32:
    """What the operation makes of x in a buffer that held `out`."""
    rows = filled(ops, out)
    make(ops, cpu)(filled(ops, x), rows)
    result: F32 = rows.numpy().copy()
    return result


def layer_norm(weight: F32, bias: F32, eps: float = 1e-5) -> Make:
    return lambda ops, cpu: ops.LayerNorm(cpu, weight, bias, eps)


def add_norm(weight: F32, eps: float = 1e-6) -> Make:
    return lambda ops, cpu: ops.AddNorm(cpu, weight, eps)


def gelu(ops: Ops, cpu: Any) -> Any:
    return ops.GELU(cpu)


def geglu(ops: Ops, cpu: Any) -> Any:
    return ops.GeGLU(cpu)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("width", [1, 15, 16, 17, 31, 33, 768, 1001])
@pytest.mark.parametrize("kind", ["normal", "zero", "spike", "tiny", "broken"])
def test_norms_of_every_width(kind: str, width: int, isa: str) -> None:
    rng = np.random.default_rng(width)
    weight, bias = activations(rng, 2, width)
    x, before = activations(rng, 20, width, kind), activations(rng, 20, width)
    for make in (layer_norm(weight, bias), add_norm(weight)):
        wanted = applied(*twin(), make, x, before)
        for num_rows in (1, 7, 20):
            actual = applied(*native(isa, 3), make, x[:num_rows], before[:num_rows])
            assert_same_bits(actual, wanted[:num_rows])


def test_layer_norm_agrees_with_float64() -> None:
    x = activations(np.random.default_rng(0), 8, 768) + np.float32(3)
    weight, bias = activations(np.random.default_rng(1), 2, 768)
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    wanted = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * weight + bias
    actual = applied(*native(ISAS[0]), layer_norm(weight, bias), x, x)
    np.testing.assert_allclose(actual, wanted, rtol=2e-6, atol=2e-6)


def test_a_norm_that_adds_is_a_norm_and_a_sum() -> None:
    rng = np.random.default_rng(0)
    x, before, weight = activations(rng, 5, 33), activations(rng, 5, 33), activations(rng, 1, 33)[0]
    normed = applied(*native(ISAS[0]), lambda ops, cpu: ops.RMSNorm(cpu, weight, 1e-6), x, x)
    assert_same_bits(applied(*native(ISAS[0]), add_norm(weight), x, before), before + normed)


SPECIAL = [0.0, -0.0, 5.0, 9.0, 10.0, 11.0, 1e-20, 1e10, 1e20, 1e30, np.inf]
RANGE = np.concatenate([np.linspace(-30, 30, 20_001), SPECIAL, [-x for x in SPECIAL], [np.nan]])
NUMBERS = np.resize(RANGE.astype(np.float32), (40, 512))


@pytest.mark.parametrize("isa", ISAS)
def test_activations_over_the_whole_range(isa: str) -> None:
    up = activations(np.random.default_rng(0), 40, 512)
    for make, x in ((gelu, NUMBERS), (geglu, np.concatenate([NUMBERS, up], axis=1))):
        wanted = applied(*twin(), make, x, up)
        for num_rows in (1, 3, 40):
            assert_same_bits(applied(*native(isa, 3), make, x[:num_rows], up[:num_rows]), wanted[:num_rows])


def test_gelu_agrees_with_float64() -> None:
    x = np.linspace(-12, 12, 40_000, dtype=np.float32).reshape(-1, 16)
    wide = x.astype(np.float64)
    wanted = wide / (1 + np.exp(-2 * np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
    actual = applied(*native(ISAS[0]), gelu, x, x)
    np.testing.assert_allclose(actual, wanted, rtol=3e-5, atol=1e-30)  # e^-y of a rounded y, up to 80
    is_near = np.abs(x) < 1
    np.testing.assert_allclose(actual[is_near], wanted[is_near], rtol=5e-7)
    np.testing.assert_allclose(actual, wanted, rtol=5e-7, atol=2e-7)


@pytest.mark.oracle
def test_gelu_agrees_with_torch() -> None:
    torch = pytest.importorskip("torch")
    x = np.linspace(-12, 12, 40_000, dtype=np.float32).reshape(-1, 16)
    wanted = torch.nn.functional.gelu(torch.from_numpy(x), approximate="tanh").numpy()
    np.testing.assert_allclose(applied(*native(ISAS[0]), gelu, x, x), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("isa", ISAS)
def test_an_activation_before_a_product(isa: str) -> None:
    """One call gives the bits of two."""
    rng = np.random.default_rng(0)
    x, weights = activations(rng, 9, 64), raw(rng, "Q8_0", 16, 64)
    ops, cpu = native(isa)
    matrix = ops.Matrix(cpu, "Q8_0", weights, 16, 64)
    activated, together, apart = ops.Rows(9, 64, True), ops.Rows(9, 16), ops.Rows(9, 16)
    ops.Linear(cpu, [matrix], before=ops.GELU(cpu), scratch=activated)(filled(ops, x), together)
    ops.GELU(cpu)(filled(ops, x), activated)
    ops.Linear(cpu, [matrix])(activated, apart)
    assert_same_bits(together.numpy(), apart.numpy())


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("width", [16, 33, 96])
def test_learned_positions_add_to_a_scaled_embedding(width: int, isa: str) -> None:
    rng = np.random.default_rng(width)
    weights, table = activations(rng, 10, width), activations(rng, 64, width)
    ids, position = rng.integers(0, 10, 30).astype(np.int32), rng.integers(0, 64, 30).astype(np.int32)
    results = []
    for ops, cpu in (twin(), native(isa, 3)):
        batch = ops.Batch(ids, position, 0 * ids, np.zeros((1, 4), np.int32), int32(0))
        x = ops.Rows(30, width)
        matrix = ops.Matrix(cpu, "F32", weights.view(np.uint8).reshape(-1), 10, width)
        ops.Embedding(cpu, matrix, 0.1)(batch, x)
        ops.PositionEmbedding(cpu, table)(batch, x)
        results.append(x.numpy().copy())
    assert_same_bits(results[1], results[0])
    assert_same_bits(results[0], weights[ids] * np.float32(0.1) + table[position])


@given(
    st.integers(1, 40), st.integers(1, 100), st.integers(0, 1 << 30), st.sampled_from([1e-3, 1.0, 30.0, 1e4])
)
@settings(max_examples=20, deadline=None)
def test_any_rows(num_rows: int, width: int, seed: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    x = activations(rng, num_rows, width) * np.float32(size)
    weight, bias = activations(rng, 2, width)
    wide = activations(rng, num_rows, 32 * width) * np.float32(size)
    half = wide[:, : 16 * width].copy()
    cases = [
        (layer_norm(weight, bias), x, x),
        (add_norm(weight), x, x),
        (gelu, wide, wide),
        (geglu, wide, half),
    ]
    for make, values, before in cases:
        wanted = applied(*twin(), make, values, before)
        for isa in ISAS:
            assert_same_bits(applied(*native(isa), make, values, before), wanted)
