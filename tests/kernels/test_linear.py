"""Products in bits: every format, mode and instruction set, alone and among others, at the edges of tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.support import (
    F32,
    FLOATS,
    FORMATS,
    ISAS,
    Ops,
    activations,
    assert_same_bits,
    columns_for,
    filled,
    int32,
    native,
    raw_weights,
    twin,
)
from tokenglass.formats.blocks import BlockType, dequantize


@dataclass(frozen=True)
class Product:
    """x [num_rows, cols] times several matrices (format, rows), with weights and activations of some kind."""

    matrices: tuple[tuple[str, int], ...]
    cols: int
    num_rows: int
    exact: bool = False
    add: bool = False
    weights: str = "normal"
    x: str = "normal"
    seed: int = 0
    bias: bool = False

    def __post_init__(self) -> None:
        """`cols` is rounded up to what the types can have."""
        for format, _ in self.matrices:
            object.__setattr__(self, "cols", columns_for(format, self.cols))

    def inputs(self) -> tuple[F32, F32]:
        """x, and what `out` holds before."""
        rng = np.random.default_rng(self.seed)
        width = sum(rows for _, rows in self.matrices)
        return activations(rng, self.num_rows, self.cols, self.x), activations(rng, self.num_rows, width)

    def bind(self, ops: Ops, cpu: Any) -> Any:
        rng = np.random.default_rng(self.seed + 1)
        matrices = []
        for format, rows in self.matrices:
            raw = raw_weights(rng, format, rows, self.cols, self.weights)
            bias = activations(rng, 1, rows)[0] if self.bias else None
            matrices.append(ops.Matrix(cpu, format, raw, rows, self.cols, None, bias))
        return ops.Linear(cpu, matrices, self.exact, self.add)

    def run(self, ops: Ops, cpu: Any, rows: slice | Sequence[int] = slice(None)) -> F32:
        """The product of these rows of x alone."""
        x, before = (values[rows] for values in self.inputs())
        out = filled(ops, before)
        self.bind(ops, cpu)(filled(ops, x, quantised=self.cols % 32 == 0), out)
        result: F32 = out.numpy().copy()
        return result


@cache
def expected(product: Product) -> F32:
    return product.run(*twin())


def check(product: Product, isa: str, num_threads: int = 2) -> None:
    assert_same_bits(product.run(*native(isa, num_threads)), expected(product))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("format", FORMATS)
def test_first_rows_get_the_same_bits_whatever_their_number(format: str, exact: bool, isa: str) -> None:
    product = Product(((format, 37),), cols=96, num_rows=65, exact=exact)
    for num_rows in (1, 7, 8, 9, 12, 13, 63, 64, 65):
        for num_threads in (1, 2, 3):
            actual = product.run(*native(isa, num_threads), slice(num_rows))
            assert_same_bits(actual, expected(product)[:num_rows])


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("format", FORMATS)
def test_shuffled_rows_give_shuffled_results(format: str, isa: str) -> None:
    product = Product(((format, 40),), cols=64, num_rows=65)
    order = np.random.default_rng(5).permutation(65)[:29].tolist()
    assert_same_bits(product.run(*native(isa), order), expected(product)[order])


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("rows", [1, 15, 16, 17, 31, 130, 1000])
def test_outputs_need_not_be_a_multiple_of_16(rows: int, isa: str) -> None:
    for format in FORMATS:
        check(Product(((format, rows),), cols=32, num_rows=3), isa, num_threads=3)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("cols", [1, 15, 31, 33, 100])
def test_float_columns_need_not_be_a_multiple_of_32(cols: int, isa: str) -> None:
    for format in FLOATS:
        check(Product(((format, 21),), cols=cols, num_rows=13), isa)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("exact", [False, True])
def test_matrices_of_different_kinds_share_one_product(exact: bool, isa: str) -> None:
    matrices = tuple((format, 5 + 11 * i) for i, format in enumerate(FORMATS))
    check(Product(matrices, cols=64, num_rows=9, exact=exact), isa, num_threads=3)


@pytest.mark.parametrize("isa", ISAS)
def test_a_bias_is_added_to_what_the_chain_gives(isa: str) -> None:
    for format in FORMATS:
        for add in (False, True):
            check(Product(((format, 37), ("Q8_0", 16)), cols=64, num_rows=11, add=add, bias=True), isa)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("exact", [False, True])
def test_add_adds_to_what_out_holds(exact: bool, isa: str) -> None:
    for format in FORMATS:
        check(Product(((format, 37),), cols=64, num_rows=13, exact=exact, add=True), isa)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("x", ["normal", "extreme", "zero", "spike", "tiny", "ties", "broken"])
@pytest.mark.parametrize("weights", ["normal", "extreme", "tiny", "zero"])
def test_extreme_weights_and_activations(weights: str, x: str, exact: bool, isa: str) -> None:
    for format in FORMATS:
        check(Product(((format, 19),), cols=96, num_rows=9, exact=exact, weights=weights, x=x), isa)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("code", [-128, -1, 127])
def test_the_largest_sum_of_bytes_does_not_saturate(code: int, isa: str) -> None:
    """255 * 127 * 2 does not fit the 16 bits that AVX2 adds pairs in; |code| * 127 * 2 does."""
    ops, cpu = native(isa)
    raw = np.zeros(34, np.uint8)
    raw[:2] = np.array([1.0], "<f2").view(np.uint8)
    raw[2:] = np.full(32, code, np.int8).view(np.uint8)
    out = ops.Rows(1, 1)
    for sign in (1.0, -1.0):
        x = filled(ops, np.full((1, 32), 127 * sign, np.float32), quantised=True)
        ops.Linear(cpu, [ops.Matrix(cpu, "Q8_0", raw, 1, 32)])(x, out)
        assert out.numpy()[0, 0] == sign * 127 * code * 32


@pytest.mark.parametrize("isa", ISAS)
def test_int8_activations_are_never_minus_128(isa: str) -> None:
    """From -123 to 385 in steps of 2 the middle is 65.5, to even 66, and -123 lies 127.5 steps below: to even
    128. AVX2 cannot negate -128 in a byte.
    """
    product = Product((("Q8_0", 16),), cols=32, num_rows=2, weights="extreme")
    ops, cpu = native(isa)
    x = filled(ops, np.tile(np.array([-123, 385], np.float32), (2, 16)), quantised=True)
    product.bind(ops, cpu)(x, ops.Rows(2, 16))
    q, scale, zero = x.quantised()
    assert (scale[0, 0], zero[0, 0], q[0, :2].tolist()) == (2.0, 66, [-127, 126])


@pytest.mark.parametrize("isa", ISAS)
def test_a_group_with_nan_is_zeros_and_its_scale_says_so(isa: str) -> None:
    """1e12 beside NaN: whichever were taken for the largest, the other would not fit."""
    values = np.ones((1, 64), np.float32)
    values[0, 5], values[0, 21] = 1e12, np.nan
    ops, cpu = native(isa)
    x, out = filled(ops, values, quantised=True), ops.Rows(1, 16)
    Product((("Q8_0", 16),), cols=64, num_rows=1).bind(ops, cpu)(x, out)
    q, scale, zero = x.quantised()
    assert (q[0, :32].any(), zero[0, 0], np.isnan(scale[0]).tolist()) == (False, 0, [True, False])
    assert np.isnan(out.numpy()).all()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kind", ["normal", "extreme", "zero", "spike", "tiny", "ties", "broken"])
def test_int8_form_of_activations(kind: str, isa: str) -> None:
    values = activations(np.random.default_rng(3), 13, 128, kind)
    forms = []
    for ops, cpu in (native(isa), twin()):
        x = filled(ops, values, quantised=True)
        Product((("Q8_0", 16),), cols=128, num_rows=13).bind(ops, cpu)(x, ops.Rows(13, 16))
        forms.append(x.quantised())
    for actual, wanted in zip(*forms, strict=True):
        assert_same_bits(actual, wanted)


def test_halves_round_to_even() -> None:
    x = np.zeros((1, 32), np.float32)
    x[0, :7] = 127, 0.5, 1.5, 2.5, -0.5, -3.5, -127
    ops, cpu = native(ISAS[0])
    rows = filled(ops, x, quantised=True)
    Product((("Q8_0", 16),), cols=32, num_rows=1).bind(ops, cpu)(rows, ops.Rows(1, 16))
    q, scale, zero = rows.quantised()
    assert q[0, :7].tolist() == [127, 0, 2, 2, 0, -4, -127]
    assert (scale[0, 0], zero[0, 0]) == (1.0, 0)


def test_all_steps_of_int8_go_where_a_group_has_numbers() -> None:
    x = np.zeros((2, 32), np.float32)
    x[0] = np.arange(32) + 96
    x[1] = -x[0]
    ops, cpu = native(ISAS[0])
    rows = filled(ops, x, quantised=True)
    Product((("Q8_0", 16),), cols=32, num_rows=2).bind(ops, cpu)(rows, ops.Rows(2, 16))
    q, scale, zero = rows.quantised()
    assert (scale[:, 0].tolist(), zero[:, 0].tolist()) == ([0.5, 0.5], [127, -127])
    np.testing.assert_array_equal((q + zero) * scale, x)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("format", FORMATS)
def test_order_moves_the_rows_of_a_matrix(format: str, isa: str) -> None:
    rows, cols = 37, columns_for(format, 64)
    rng = np.random.default_rng(1)
    raw, order = raw_weights(rng, format, rows, cols), rng.permutation(rows).astype(np.int32)
    bias = activations(rng, 1, rows)[0]
    x = activations(rng, 3, cols)
    results = []
    for ops, cpu in (native(isa), twin()):
        for matrix in (
            ops.Matrix(cpu, format, raw, rows, cols, None, bias),
            ops.Matrix(cpu, format, raw, rows, cols, order, bias),
        ):
            out = ops.Rows(3, rows)
            ops.Linear(cpu, [matrix])(filled(ops, x, quantised=True), out)
            results.append(out.numpy().copy())
    assert_same_bits(results[1], results[0][:, order])
    assert_same_bits(results[1], results[3])


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kind", ["normal", "extreme", "tiny", "zero"])
@pytest.mark.parametrize("format", FORMATS)
def test_embedding_is_a_dequantised_row(format: str, kind: str, isa: str) -> None:
    rows, cols = 37, columns_for(format, 96)
    raw = raw_weights(np.random.default_rng(2), format, rows, cols, kind)
    ids = np.concatenate([np.arange(rows), [0, 0, 36]]).astype(np.int32)
    results = []
    for ops, cpu in (native(isa), twin()):
        batch = ops.Batch(ids, np.zeros_like(ids), np.zeros_like(ids), int32(0)[None], int32(0))
        out = ops.Rows(len(ids), cols)
        ops.Embedding(cpu, ops.Matrix(cpu, format, raw, rows, cols))(batch, out)
        results.append(out.numpy().copy())
    assert_same_bits(*results)
    block_type = BlockType[format]
    assert_same_bits(results[0], dequantize(block_type, raw, (rows, cols))[ids])


def test_bytes_of_weights_are_those_of_the_file() -> None:
    """A panel is no bigger than its blocks; rows are filled up to 16."""
    for format in FORMATS:
        product = Product(((format, 32), (format, 17)), cols=64, num_rows=1)
        for ops, cpu in (native(ISAS[0]), twin()):
            assert product.bind(ops, cpu).num_bytes == BlockType[format].num_bytes((32 + 32, product.cols))


products = st.builds(
    Product,
    matrices=st.lists(st.tuples(st.sampled_from(FORMATS), st.integers(1, 70)), min_size=1, max_size=3).map(
        tuple
    ),
    cols=st.integers(1, 5).map(lambda groups: 32 * groups),
    num_rows=st.integers(1, 70),
    exact=st.booleans(),
    add=st.booleans(),
    weights=st.sampled_from(["normal", "extreme", "tiny"]),
    x=st.sampled_from(["normal", "extreme", "spike", "tiny", "ties"]),
    seed=st.integers(0, 1 << 30),
    bias=st.booleans(),
)


def check_everywhere(product: Product, num_threads: int) -> None:
    wanted = product.run(*twin())
    for isa in ISAS:
        assert_same_bits(product.run(*native(isa, num_threads)), wanted)


@given(products, st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_any_product(product: Product, num_threads: int) -> None:
    check_everywhere(product, num_threads)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@given(products, st.integers(1, 4))
@settings(max_examples=10_000, deadline=None)
def test_any_product_ten_thousand_times(product: Product, num_threads: int) -> None:
    check_everywhere(product, num_threads)
