"""The twin's own arithmetic against exact fractions: a twin that errs with its kernels proves nothing."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.kernels.support import BLOCKS, FORMATS, columns_for, raw_weights
from tokenglass.kernels.reference_blocks import Blocks, unpack
from tokenglass.kernels.reference_numbers import fma, lane_sum, quantise, tree_sum

numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)
short = st.builds(
    lambda m, e: float(np.ldexp(np.float32(m), e)), st.integers(-4097, 4097), st.integers(-90, 40)
)


def nearest_float32(x: Fraction) -> float:
    """x rounded once to a float32, ties to even (as `round` does), in exact whole numbers."""
    if x == 0:
        return 0.0
    exponent = abs(x.numerator).bit_length() - x.denominator.bit_length()
    if Fraction(2) ** exponent > abs(x):
        exponent -= 1  # now 2^exponent <= |x| < 2^(exponent + 1)
    unit = Fraction(2) ** (max(exponent, -126) - 23)
    rounded = round(x / unit) * unit
    return float(rounded) if abs(rounded) < 2**128 else math.copysign(math.inf, x)


@given(st.one_of(numbers, short), st.one_of(numbers, short), st.one_of(numbers, short))
@settings(max_examples=300, deadline=None)
@example(1 + 2.0**-12, 1 + 2.0**-12, 2.0**-80)  # just above half way: float64 alone would round to even
@example(1 + 2.0**-12, 1 + 2.0**-12, -(2.0**-80))
@example(1 - 2.0**-24, 1 + 2.0**-23, 2.0**-75)
@example(2.0**-75, 2.0**-75, 2.0**-149)  # a tie between subnormals
@example(2.0**-75, 2.0**-75 * (1 + 2.0**-23), 0.0)
@example(2.0**100, 2.0**27 * (2 - 2.0**-23), 2.0**103)  # to infinity, by a hair
def test_fma_rounds_once(a: float, b: float, c: float) -> None:
    found = float(fma(*(np.array(x, np.float32) for x in (a, b, c))))
    assert found == nearest_float32(Fraction(a) * Fraction(b) + Fraction(c))


def test_fma_of_infinities_and_signed_zeros() -> None:
    a, b, c = np.array(
        [[np.inf, 0, 0], [np.inf, 1, -np.inf], [-0.0, 1, -0.0], [-0.0, 1, 0.0], [3e38, 3e38, 0]], np.float32
    ).T
    found = fma(a, b, c)
    np.testing.assert_array_equal(found, np.array([np.nan, np.nan, -0.0, 0.0, np.inf], np.float32))
    assert np.signbit(found[2:4]).tolist() == [True, False]


def test_sums_have_one_order() -> None:
    """Lane i with i + 8, then + 4, + 2, + 1: only that order keeps the small number."""
    x = np.zeros(16, np.float32)
    x[0], x[8], x[1] = 2**24, -(2**24), 1
    assert tree_sum(x) == 1
    x[8], x[9] = 0, -(2**24)
    assert tree_sum(x) == 2**24 + (1 - 2**24)
    many = np.zeros(40, np.float32)
    many[3], many[19], many[35] = 2**24, 1, 1  # one lane, in order: each 1 is lost
    assert lane_sum(many) == 2**24


def test_quantised_rows_by_hand() -> None:
    x = np.zeros((2, 64), np.float32)
    x[0, :4] = 254, -100, 3, -5  # both sides: steps of 2
    x[1, :4] = 1008, -8, 6, 0  # one side: 1016 wide, steps of 4, the middle 500 from 0
    q, scale, zero = quantise(x)
    assert q[:, 0, :4].tolist() == [[127, -50, 2, -2], [127, -127, -124, -125]]
    assert (scale.tolist(), zero.tolist()) == ([[2.0, 0.0], [4.0, 0.0]], [[0, 0], [125, 0]])


@pytest.mark.parametrize("format", FORMATS)
def test_blocks_unpack_as_the_gguf_package_does(format: str) -> None:
    gguf = pytest.importorskip("gguf")
    rows, cols = 5, columns_for(format, 96)
    for kind in ("normal", "extreme", "tiny"):
        raw = raw_weights(np.random.default_rng(0), format, rows, cols, kind)
        weights = unpack(format, raw, rows, cols)
        assert isinstance(weights, Blocks) == (format in BLOCKS)
        found = np.stack(list(weights.columns()), axis=1) if isinstance(weights, Blocks) else weights
        wanted = gguf.quants.dequantize(raw.reshape(rows, -1), gguf.GGMLQuantizationType[format])
        np.testing.assert_array_equal(found, wanted)
