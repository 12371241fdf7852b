"""What the blocks of a GGUF file mean, for the products in `reference.py`: codes, and what makes weights of
them.

The panels in csrc/panels hold the same numbers in another order; there each layout is drawn.
`formats/blocks.py` unpacks the same blocks to floats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokenglass.kernels.reference_numbers import F32, GROUP

U8 = NDArray[np.uint8]
I32 = NDArray[np.int32]


@dataclass(frozen=True)
class Blocks:
    """Quantised weights: w = d * code + m, or with two halves a group d * scale[h] * code + m * minimum[h].

    code int32 [groups, rows, 32]; d and m float32 [groups, rows]; scale and minimum int32 [groups, rows, 2].
    """

    code: I32
    d: F32
    m: F32 | None = None
    scale: I32 | None = None
    minimum: I32 | None = None

    def columns(self) -> Iterator[F32]:
        """float32 [rows], one for each column: a rounded product, then a rounded sum."""
        for g in range(len(self.code)):
            for c in range(GROUP):
                h = c // 16
                with np.errstate(invalid="ignore", over="ignore"):
                    d = self.d[g] if self.scale is None else self.d[g] * floats(self.scale[g, :, h])
                    w = d * floats(self.code[g, :, c])
                    if self.m is not None:
                        m = self.m[g] if self.minimum is None else self.m[g] * floats(self.minimum[g, :, h])
                        w = w + m
                yield w


def floats(x: NDArray[np.signedinteger]) -> F32:
    return x.astype(np.float32)


def unpack(format: str, raw: U8, rows: int, cols: int) -> F32 | Blocks:
    """A tensor as it lies in the file, as float32 [rows, cols] or as `Blocks`."""
    if format == "F32":
        return raw.view("<f4").astype(np.float32).reshape(rows, cols)
    if format == "F16":
        return raw.view("<f2").astype(np.float32).reshape(rows, cols)
    if format == "BF16":  # the upper half of a float32
        return (raw.view("<u2").astype(np.uint32) << 16).view(np.float32).reshape(rows, cols)
    columns, num_bytes, parts = FORMATS[format]
    block = raw.reshape(rows, cols // columns, num_bytes).transpose(1, 0, 2)  # [blocks, rows, bytes]
    return parts(block)


# Each function below takes uint8 [blocks, rows, bytes of a block]. Where a block is 32 columns it is a group.


def _q4_0(block: U8) -> Blocks:
    """d f16 | 16 bytes: column i in the low half of byte i, column 16 + i in the high one"""
    return Blocks(nibbles(block[..., 2:]) - 8, half_at(block, 0))


def _q4_1(block: U8) -> Blocks:
    """d f16 | m f16 | 16 bytes"""
    return Blocks(nibbles(block[..., 4:]), half_at(block, 0), half_at(block, 2))


def _q5_0(block: U8) -> Blocks:
    """d f16 | 4 bytes: bit 4 of column i in bit i | 16 bytes"""
    return Blocks(nibbles(block[..., 6:]) + 16 * bits(block[..., 2:6]) - 16, half_at(block, 0))


def _q5_1(block: U8) -> Blocks:
    """d f16 | m f16 | 4 bytes | 16 bytes"""
    return Blocks(nibbles(block[..., 8:]) + 16 * bits(block[..., 4:8]), half_at(block, 0), half_at(block, 2))


def _q8_0(block: U8) -> Blocks:
    """d f16 | 32 int8"""
    return Blocks(signed(block[..., 2:]), half_at(block, 0))


def _iq4_nl(block: U8) -> Blocks:
    """d f16 | 16 bytes, which choose from a table"""
    table = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
    return Blocks(np.array(table, np.int32)[nibbles(block[..., 2:])], half_at(block, 0))


def _q2_k(block: U8) -> Blocks:
    """16 bytes: scale and minimum | 64 bytes: 2 bits, 128 columns in 32 of them | d f16 | dmin f16"""
    code = crumbs(block[..., 16:80])
    m = -half_at(block, 82)
    return Blocks(
        code, each(half_at(block, 80)), each(m), halves(block[..., :16] & 15), halves(block[..., :16] >> 4)
    )


def _q3_k(block: U8) -> Blocks:
    """32 bytes: bit 2 of group g in bit g | 64 bytes: bits 0 and 1 | 12 bytes: scales of 6 bits | d f16"""
    high = np.concatenate(
        [(block[..., :32] >> g & 1)[:, None] for g in range(8)], axis=1
    )  # [blocks, 8, rows, 32]
    code = crumbs(block[..., 32:96]) + 4 * high.reshape(-1, *high.shape[2:]).astype(np.int32) - 4
    s = block[..., 96:].astype(np.int32)
    scale = np.stack(
        [(s[..., i % 8] >> i // 8 * 4 & 15) | (s[..., 8 + i % 4] >> i // 4 * 2 & 3) << 4 for i in range(16)],
        axis=-1,
    )
    return Blocks(code, each(half_at(block, 108)), None, halves(scale) - 32)


def _q4_k(block: U8) -> Blocks:
    """d f16 | dmin f16 | 12 bytes: 8 scales, 8 minimums | 128 bytes: group 2i low, 2i + 1 high in 32"""
    return _k_scales(block, group_nibbles(block[..., 16:]))


def _q5_k(block: U8) -> Blocks:
    """d f16 | dmin f16 | 12 bytes | 32 bytes: bit 4 of group g in bit g | 128 bytes"""
    high = np.concatenate([(block[..., 16:48] >> g & 1)[:, None] for g in range(8)], axis=1)
    code = group_nibbles(block[..., 48:]) + 16 * high.reshape(-1, *high.shape[2:]).astype(np.int32)
    return _k_scales(block, code)


def _q6_k(block: U8) -> Blocks:
    """128 bytes: bits 0-3 | 64 bytes: bits 4 and 5 | 16 int8: scales | d f16"""
    low = [block[..., i : i + 32] >> shift & 15 for i, shift in _Q6_LOW]
    code = np.stack(low, axis=1).reshape(-1, block.shape[1], GROUP).astype(np.int32)
    code += 16 * crumbs(block[..., 128:192]) - 32
    return Blocks(code, each(half_at(block, 208)), None, halves(signed(block[..., 192:208])))


_Q6_LOW = (
    (0, 0),
    (32, 0),
    (0, 4),
    (32, 4),
    (64, 0),
    (96, 0),
    (64, 4),
    (96, 4),
)  # byte and shift of each group

# Block types of GGUF that have panels: values and bytes of a block, what it means.
FORMATS: dict[str, tuple[int, int, Callable[[U8], Blocks]]] = {
    "Q4_0": (32, 18, _q4_0),
    "Q4_1": (32, 20, _q4_1),
    "Q5_0": (32, 22, _q5_0),
    "Q5_1": (32, 24, _q5_1),
    "Q8_0": (32, 34, _q8_0),
    "IQ4_NL": (32, 18, _iq4_nl),
    "Q2_K": (256, 84, _q2_k),
    "Q3_K": (256, 110, _q3_k),
    "Q4_K": (256, 144, _q4_k),
    "Q5_K": (256, 176, _q5_k),
    "Q6_K": (256, 210, _q6_k),
}
FLOATS = {"F32": 4, "F16": 2, "BF16": 2}  # bytes of a value


def num_bytes(format: str, rows: int, cols: int) -> int:
    """Of a matrix as panels, which hold 16 rows: as many as in the file."""
    columns, block_bytes = (1, FLOATS[format]) if format in FLOATS else FORMATS[format][:2]
    return -(-rows // 16) * 16 * cols // columns * block_bytes


def nibbles(x: U8) -> I32:
    """[..., 16] bytes to [..., 32]: low halves, then high ones."""
    return np.concatenate([x & 15, x >> 4], axis=-1).astype(np.int32)


def bits(x: U8) -> I32:
    """[..., 4] bytes to [..., 32], lowest bit first."""
    return np.unpackbits(x, axis=-1, bitorder="little").astype(np.int32)


def signed(x: U8) -> I32:
    return np.ascontiguousarray(x).view(np.int8).astype(np.int32)


def half_at(block: U8, byte: int) -> F32:
    """The float16 that begins at `byte` of each block, float32 [blocks, rows]."""
    return block[..., byte : byte + 2].copy().view("<f2")[..., 0].astype(np.float32)


def each(x: F32) -> F32:
    """[blocks, rows] to [8 groups of each block, rows]."""
    return np.repeat(x, 8, axis=0)


def halves(x: NDArray[np.generic]) -> I32:
    """[blocks, rows, 16] to [groups, rows, 2]."""
    blocks, rows, _ = x.shape
    return x.reshape(blocks, rows, 8, 2).swapaxes(1, 2).reshape(-1, rows, 2).astype(np.int32)


def crumbs(x: U8) -> I32:
    """[blocks, rows, 64] bytes, 32 of which hold two bits of four groups, to [groups, rows, 32]."""
    groups = [x[..., g // 4 * 32 :][..., :32] >> g % 4 * 2 & 3 for g in range(8)]
    return np.stack(groups, axis=1).reshape(-1, x.shape[1], GROUP).astype(np.int32)


def group_nibbles(x: U8) -> I32:
    """[blocks, rows, 128] bytes, 32 of which hold two groups, to [groups, rows, 32]."""
    groups = [x[..., g // 2 * 32 :][..., :32] >> g % 2 * 4 & 15 for g in range(8)]
    return np.stack(groups, axis=1).reshape(-1, x.shape[1], GROUP).astype(np.int32)


def _k_scales(block: U8, code: I32) -> Blocks:
    """Q4_K and Q5_K: d times a scale is exact in float32, so each group has its own d and m."""
    s = block[..., 4:16].astype(np.int32)
    low, high, rest = s[..., :4], s[..., 4:8], s[..., 8:]
    scale = np.concatenate([low & 63, (rest & 15) | low >> 6 << 4], axis=-1)  # [blocks, rows, 8]
    minimum = np.concatenate([high & 63, rest >> 4 | high >> 6 << 4], axis=-1)
    with np.errstate(invalid="ignore"):
        d = half_at(block, 0)[..., None] * floats(scale)
        m = -(half_at(block, 2)[..., None] * floats(minimum))
    rows = block.shape[1]
    return Blocks(code, d.swapaxes(1, 2).reshape(-1, rows), m.swapaxes(1, 2).reshape(-1, rows))
