"""What the kernel tests share: weights in the blocks of a file, activations of many kinds, equality of bits.

`ops` is a module of kernels, either `_native` or its twin `reference`; a test says once what it does, runs it
on both and calls `assert_same_bits`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.support.tiny_gguf import SCALE_OFFSETS
from tokenglass.formats.blocks import BlockType
from tokenglass.kernels import _native, reference

Ops = Any  # _native or reference
F32 = NDArray[np.float32]

ISAS = _native.runnable_isas()
FLOATS = ["F32", "F16", "BF16"]
BLOCKS = {name: (BlockType[name].block_len, BlockType[name].block_bytes) for name in SCALE_OFFSETS}
FORMATS = [*FLOATS, *BLOCKS]


def columns_for(format: str, cols: int) -> int:
    """The next number of columns that this type can have."""
    block = BLOCKS[format][0] if format in BLOCKS else 1
    return -(-cols // block) * block


def twin() -> tuple[Ops, Any]:
    """The reference and its Cpu."""
    return reference, reference.Cpu(1, "numpy")


def native(isa: str, num_threads: int = 2) -> tuple[Ops, Any]:
    """The C++ on one instruction set."""
    return _native, _native.Cpu(num_threads, isa)


def assert_same_bits(actual: NDArray[Any], expected: NDArray[Any]) -> None:
    """Equal bit for bit, so -0.0 is not 0.0; but any NaN equals any other."""
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    if actual.dtype.kind == "f":
        either_nan = np.isnan(actual) | np.isnan(expected)
        assert (np.isnan(actual) == np.isnan(expected)).all(), "NaN in different places"
        actual, expected = np.where(either_nan, 0, actual), np.where(either_nan, 0, expected)
        bits = f"u{actual.dtype.itemsize}"
        np.testing.assert_array_equal(actual.view(bits), expected.view(bits))
    else:
        np.testing.assert_array_equal(actual, expected)


def raw_weights(
    rng: np.random.Generator, format: str, rows: int, cols: int, kind: str = "normal"
) -> NDArray[np.uint8]:
    """A tensor [rows, cols] as a file holds it.

    kind: `normal`; `extreme` (only the codes at both ends: -128 and 127, nibbles 0 and 15); `tiny` (scales
    that are float16 subnormals); `zero` (all bytes 0).
    """
    if kind == "zero":
        return np.zeros(BlockType[format].num_bytes((rows, cols)), np.uint8)
    if format in FLOATS:
        size = {"normal": 1.0, "extreme": 1e4, "tiny": 1e-6}[kind]
        values = (rng.standard_normal((rows, cols)) * size).astype(np.float32)
        if format == "BF16":
            return (values.view(np.uint32) >> 16).astype("<u2").view(np.uint8).reshape(-1)
        return values.astype("<f4" if format == "F32" else "<f2").view(np.uint8).reshape(-1)
    num_blocks = cols // BLOCKS[format][0]
    block = rng.integers(0, 256, (rows, num_blocks, BLOCKS[format][1]), dtype=np.uint8)
    if kind == "extreme":
        ends = [0x80, 0x7F] if format in ("Q8_0", "Q6_K") else [0x00, 0xFF, 0x0F, 0xF0]
        block = rng.choice(np.array(ends, np.uint8), block.shape)
    size = 3e-7 if kind == "tiny" else 0.02
    for byte in SCALE_OFFSETS[format]:
        scales = rng.standard_normal((rows, num_blocks, 1)) * size
        block[..., byte : byte + 2] = scales.astype("<f2").view(np.uint8)
    return block.reshape(-1)


def activations(rng: np.random.Generator, rows: int, width: int, kind: str = "normal") -> F32:
    """float32 [rows, width].

    kind: `normal`; `extreme` (all of one size, so that every int8 is 127 or -127); `zero`; `spike` (one large
    number in each row); `tiny` (float32 subnormals); `ties` (halves, which int8 rounding sends to even);
    `broken` (infinities and NaN among numbers).
    """
    values = rng.standard_normal((rows, width)).astype(np.float32)
    if kind == "extreme":
        return np.where(values > 0, np.float32(3.0), np.float32(-3.0))
    if kind == "zero":
        return np.zeros_like(values)
    if kind == "spike":
        values[:, width // 2] = 1e6
    if kind == "tiny":
        return (np.rint(values * 90) * np.float32(2.0**-149)).astype(np.float32)
    if kind == "ties":
        values = (rng.integers(-254, 255, (rows, width)) / 2).astype(np.float32)
        values[:, ::32] = 127
    if kind == "broken":
        values[rng.random(values.shape) < 0.02] = np.inf
        values[rng.random(values.shape) < 0.02] = np.nan
    return values


def filled(ops: Ops, values: F32, *, quantised: bool = False, capacity: int | None = None) -> Any:
    """A buffer that holds these rows."""
    rows = ops.Rows(capacity or len(values), values.shape[1], quantised)
    rows.fill(values)
    return rows


def int32(*values: int) -> NDArray[np.int32]:
    return np.array(values, np.int32)
