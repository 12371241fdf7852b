"""The block types of GGUF and how each unpacks to float32, in numpy: to read, and to check kernels against.

A row of a quantised matrix is cut into blocks of `block_len` values. A block is `block_bytes` bytes: packed
codes, and the scales that turn them into values; each function draws its layout. The fast path is in `csrc/`.
Source: ggml-common.h and ggml-quants.c of https://github.com/ggml-org/ggml (MIT). Tests compare every type
with the `gguf` package, bit by bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]


class BlockType(IntEnum):
    """How a tensor's values are stored; the number is the type's id in a GGUF file.

    `BLOCK_TYPES[3]` is `BlockType.Q4_1`, with `name` "Q4_1", `block_len` 32 and `block_bytes` 20.
    """

    block_len: int  # values per block; a row holds a whole number of blocks
    block_bytes: int

    def __new__(cls, type_id: int, block_len: int, block_bytes: int) -> BlockType:
        member = int.__new__(cls, type_id)
        member._value_ = type_id
        member.block_len = block_len
        member.block_bytes = block_bytes
        return member

    # id, values per block, bytes per block
    F32 = 0, 1, 4
    F16 = 1, 1, 2
    Q4_0 = 2, 32, 18
    Q4_1 = 3, 32, 20
    Q5_0 = 6, 32, 22
    Q5_1 = 7, 32, 24
    Q8_0 = 8, 32, 34
    Q8_1 = 9, 32, 40
    Q2_K = 10, 256, 84
    Q3_K = 11, 256, 110
    Q4_K = 12, 256, 144
    Q5_K = 13, 256, 176
    Q6_K = 14, 256, 210
    Q8_K = 15, 256, 292
    IQ2_XXS = 16, 256, 66
    IQ2_XS = 17, 256, 74
    IQ3_XXS = 18, 256, 98
    IQ1_S = 19, 256, 50
    IQ4_NL = 20, 32, 18
    IQ3_S = 21, 256, 110
    IQ2_S = 22, 256, 82
    IQ4_XS = 23, 256, 136
    I8 = 24, 1, 1
    I16 = 25, 1, 2
    I32 = 26, 1, 4
    I64 = 27, 1, 8
    F64 = 28, 1, 8
    IQ1_M = 29, 256, 56
    BF16 = 30, 1, 2
    TQ1_0 = 34, 256, 54
    TQ2_0 = 35, 256, 66
    MXFP4 = 39, 32, 17

    @property
    def is_supported(self) -> bool:
        """Whether `dequantize` reads this type; the others are known by name and length only."""
        return self in _DEQUANTIZERS

    def num_bytes(self, shape: tuple[int, ...]) -> int:
        """Bytes of a tensor of `shape`, whose rows must be whole blocks."""
        return math.prod(shape) // self.block_len * self.block_bytes


BLOCK_TYPES: dict[int, BlockType] = {member.value: member for member in BlockType}  # by id in the file

_CHUNK_VALUES = 1 << 17  # unpacked at a time: intermediate arrays stay small and in the cache


def dequantize(block_type: BlockType, raw: Bytes, shape: tuple[int, ...]) -> Floats:
    """A new float32 array of `shape` from `raw`, uint8 [num_bytes], row after row.

    `dequantize(BlockType.Q8_0, raw, (2, 64))` needs 2 * 64 / 32 * 34 = 136 bytes.
    ValueError: the type is not supported, or `raw` has another length.
    """
    if not block_type.is_supported:
        raise ValueError(f"{block_type.name} is not supported yet")
    if raw.size != block_type.num_bytes(shape) or (shape and shape[-1] % block_type.block_len):
        raise ValueError(f"{raw.size} bytes are not {block_type.name} of shape {shape}")
    unpack = _DEQUANTIZERS[block_type]
    blocks = raw.reshape(-1, block_type.block_bytes)
    values = np.empty((len(blocks), block_type.block_len), np.float32)
    step = _CHUNK_VALUES // block_type.block_len
    with np.errstate(all="ignore"):  # a hostile file may hold infinite scales: NaNs, not warnings
        for start in range(0, len(blocks), step):
            values[start : start + step] = unpack(blocks[start : start + step])
    return values.reshape(shape)


# Each function below takes uint8 [blocks, block_bytes] and gives float32 [blocks, block_len].
# The order of the float operations is ggml's: another order would round differently.


def _f32(blocks: Bytes) -> Floats:
    return _field(blocks, "<f4")


def _f16(blocks: Bytes) -> Floats:
    return _field(blocks, "<f2")


def _bf16(blocks: Bytes) -> Floats:
    """bfloat16 is the upper half of a float32."""
    halves = np.ascontiguousarray(blocks).view("<u2")
    wide: NDArray[np.uint32] = np.left_shift(halves, 16, dtype=np.uint32)
    return wide.view(np.float32)


def _q4_0(blocks: Bytes) -> Floats:
    """| d fp16 | 16 bytes of codes |   value = d * (code - 8)"""
    d, codes = _field(blocks[:, :2], "<f2"), _nibbles(blocks[:, 2:])
    return d * (codes.astype(np.float32) - 8)


def _q4_1(blocks: Bytes) -> Floats:
    """| d fp16 | m fp16 | 16 bytes of codes |   value = d * code + m"""
    d, m, codes = _field(blocks[:, :2], "<f2"), _field(blocks[:, 2:4], "<f2"), _nibbles(blocks[:, 4:])
    return d * codes.astype(np.float32) + m


def _q5_0(blocks: Bytes) -> Floats:
    """| d fp16 | 4 bytes: bit 4 of each code | 16 bytes: bits 0-3 |   value = d * (code - 16)"""
    d = _field(blocks[:, :2], "<f2")
    codes = _nibbles(blocks[:, 6:]) | _bits(blocks[:, 2:6]) << 4
    return d * (codes.astype(np.float32) - 16)


def _q5_1(blocks: Bytes) -> Floats:
    """| d fp16 | m fp16 | 4 bytes: bit 4 of each code | 16 bytes: bits 0-3 |   value = d * code + m"""
    d, m = _field(blocks[:, :2], "<f2"), _field(blocks[:, 2:4], "<f2")
    codes = _nibbles(blocks[:, 8:]) | _bits(blocks[:, 4:8]) << 4
    return d * codes.astype(np.float32) + m


def _q8_0(blocks: Bytes) -> Floats:
    """| d fp16 | 32 signed bytes |   value = code * d"""
    return _field(blocks[:, 2:], "i1") * _field(blocks[:, :2], "<f2")


def _iq4_nl(blocks: Bytes) -> Floats:
    """| d fp16 | 16 bytes of codes |   value = d * table[code]"""
    table = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)
    return _field(blocks[:, :2], "<f2") * table[_nibbles(blocks[:, 2:])]


def _q2_k(blocks: Bytes) -> Floats:
    """| 16 bytes: scale low, minimum high | 64 bytes of codes | d fp16 | dmin fp16 |

    16 groups of 16: value = (d * scale) * code - dmin * minimum. Each half of the block (128 values) has 32
    bytes of codes: bits 2i and 2i + 1 belong to values 32i to 32i + 31.
    """
    d = _field(blocks[:, 80:82], "<f2") * (blocks[:, :16] & 15).astype(np.float32)  # [blocks, 16]
    minimum = _field(blocks[:, 82:84], "<f2") * (blocks[:, :16] >> 4).astype(np.float32)
    codes = _pairs_of_bits(blocks[:, 16:80])
    return (d[:, :, None] * codes.astype(np.float32) - minimum[:, :, None]).reshape(-1, 256)


def _q3_k(blocks: Bytes) -> Floats:
    """| 32 bytes: bit 2 of each code | 64 bytes: bits 0-1, as in Q2_K | 12 bytes: 16 scales | d fp16 |

    16 groups of 16: value = (d * (scale - 32)) * (code - 4). Bit g of byte j of the 32 belongs to value j of
    the 32 values from 32g on. A scale has six bits: four in half a byte of the first 8, two in a quarter of
    the last 4.
    """
    low = _nibbles(blocks[:, 96:104])  # scale i in byte i % 8
    high = _shifted(blocks[:, None, 104:108], (0, 2, 4, 6)).reshape(-1, 16) & 3  # scale i in byte i % 4
    scales = (low | high << 4).astype(np.float32) - 32
    d = _field(blocks[:, 108:110], "<f2") * scales  # [blocks, 16]
    bit = _shifted(blocks[:, None, :32], (0, 1, 2, 3, 4, 5, 6, 7)).reshape(-1, 16, 16) & 1
    codes = _pairs_of_bits(blocks[:, 32:96]) | bit << 2
    return (d[:, :, None] * (codes.astype(np.float32) - 4)).reshape(-1, 256)


def _q4_k(blocks: Bytes) -> Floats:
    """| d fp16 | dmin fp16 | 12 bytes: 8 scales, 8 minimums | 128 bytes of codes |

    8 groups of 32: value = (d * scale) * code - dmin * minimum
    """
    d, minimum = _scales_and_minimums(blocks)
    codes = _nibbles(blocks[:, 16:].reshape(-1, 32)).reshape(-1, 8, 32)  # 32 bytes hold groups 2i and 2i + 1
    return (d * codes.astype(np.float32) - minimum).reshape(-1, 256)


def _q5_k(blocks: Bytes) -> Floats:
    """| d fp16 | dmin fp16 | 12 bytes: 8 scales, 8 minimums | 32 bytes: bit 4 | 128 bytes: bits 0-3 |

    Values as in Q4_K. Bit g of byte j of the 32 belongs to value j of group g.
    """
    d, minimum = _scales_and_minimums(blocks)
    low = _nibbles(blocks[:, 48:].reshape(-1, 32)).reshape(-1, 8, 32)
    high = _shifted(blocks[:, None, 16:48], (0, 1, 2, 3, 4, 5, 6, 7)) & 1  # [blocks, 8, 32]
    codes = low | high << 4
    return (d * codes.astype(np.float32) - minimum).reshape(-1, 256)


def _q6_k(blocks: Bytes) -> Floats:
    """| 128 bytes: bits 0-3 | 64 bytes: bits 4-5 | 16 signed bytes: scales | d fp16 |

    16 groups of 16: value = (d * scale) * (code - 32). Each half of the block (128 values) has 64 + 32 bytes
    of codes: 64 low nibbles, then 64 high; bits 2i and 2i + 1 of the 32 belong to values 32i to 32i + 31.
    """
    low = _nibbles(blocks[:, :128].reshape(-1, 64)).reshape(-1, 2, 4, 32)
    high = _shifted(blocks[:, 128:192].reshape(-1, 2, 1, 32), (0, 2, 4, 6)) & 3  # [blocks, 2, 4, 32]
    codes = (low | high << 4).reshape(-1, 16, 16)
    d = _field(blocks[:, 208:], "<f2") * _field(blocks[:, 192:208], "i1")  # [blocks, 16]
    return (d[:, :, None] * (codes.astype(np.float32) - 32)).reshape(-1, 256)


def _scales_and_minimums(blocks: Bytes) -> tuple[Floats, Floats]:
    """d * scale and dmin * minimum of Q4_K and Q5_K, float32 [blocks, 8, 1], from 6-bit numbers in 12 bytes.

    byte      0-3: hh ssssss   4-7: hh mmmmmm   8-11: mmmm ssss
    groups 0-3: the six low bits of bytes 0-3 (scales) and 4-7 (minimums)
    groups 4-7: four bits in bytes 8-11, and above them the two high bits hh of bytes 0-3 and 4-7
    """
    first, second, third = blocks[:, 4:8], blocks[:, 8:12], blocks[:, 12:16]
    scales = np.concatenate([first & 63, (third & 15) | (first >> 6 << 4)], axis=1)
    minimums = np.concatenate([second & 63, (third >> 4) | (second >> 6 << 4)], axis=1)
    d, dmin = _field(blocks[:, :2], "<f2"), _field(blocks[:, 2:4], "<f2")
    return (d * scales.astype(np.float32))[:, :, None], (dmin * minimums.astype(np.float32))[:, :, None]


def _field(columns: Bytes, dtype: str) -> Floats:
    """Columns of the blocks read as numbers of `dtype`, widened to float32 [blocks, numbers]."""
    return np.ascontiguousarray(columns).view(dtype).astype(np.float32)


def _nibbles(columns: Bytes) -> Bytes:
    """[blocks, n] bytes to [blocks, 2n] codes: the n low halves and then the n high halves."""
    return np.concatenate([columns & 15, columns >> 4], axis=1)


def _bits(columns: Bytes) -> Bytes:
    """[blocks, 4] bytes to [blocks, 32] bits, lowest bit first."""
    return np.unpackbits(columns, axis=1, bitorder="little")


def _pairs_of_bits(columns: Bytes) -> Bytes:
    """[blocks, 64] bytes to codes [blocks, 16, 16]; 32 bytes hold 128 of them."""
    codes = _shifted(columns.reshape(-1, 2, 1, 32), (0, 2, 4, 6)) & np.uint8(3)
    return codes.reshape(-1, 16, 16)


def _shifted(columns: Bytes, shifts: tuple[int, ...]) -> Bytes:
    """[..., 1, n] bytes to [..., shifts, n]: each row shifted right by one of `shifts`."""
    return columns >> np.array(shifts, np.uint8)[:, None]


_DEQUANTIZERS: dict[BlockType, Callable[[Bytes], Floats]] = {
    BlockType.F32: _f32,
    BlockType.F16: _f16,
    BlockType.BF16: _bf16,
    BlockType.Q4_0: _q4_0,
    BlockType.Q4_1: _q4_1,
    BlockType.Q5_0: _q5_0,
    BlockType.Q5_1: _q5_1,
    BlockType.Q8_0: _q8_0,
    BlockType.IQ4_NL: _iq4_nl,
    BlockType.Q2_K: _q2_k,
    BlockType.Q3_K: _q3_k,
    BlockType.Q4_K: _q4_k,
    BlockType.Q5_K: _q5_k,
    BlockType.Q6_K: _q6_k,
}
