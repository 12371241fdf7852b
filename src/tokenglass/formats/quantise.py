"""Floats to blocks: the other direction of `blocks.py`, for weights that are quantised when they are loaded.

Rounding is nearest, ties to even, with the scale as the file will hold it (float16): no search for a better
one. Sources: the layouts are ggml's (ggml-common.h, MIT); a test holds the error of every type.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tokenglass.formats.blocks import BlockType

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]


def quantise(block_type: BlockType, values: Floats) -> Bytes:
    """`values` float32 [..., cols] as blocks, uint8 [num_bytes]; cols must be whole blocks.

    ValueError: nothing is written in this type (F32, F16, BF16, Q8_0, Q4_0 and Q4_1 are).
    """
    if block_type not in _QUANTISERS or values.shape[-1] % block_type.block_len:
        raise ValueError(f"no {block_type.name} of rows of {values.shape[-1]}")
    with np.errstate(over="ignore", invalid="ignore"):  # infinite weights: the logits will tell, not numpy
        return _QUANTISERS[block_type](np.ascontiguousarray(values, np.float32))


def to_q8_0(values: Floats) -> Bytes:
    """Q8_0: per 32 columns a float16 scale (largest / 127) and 32 int8."""
    groups = values.reshape(-1, 32)
    blocks = np.empty((len(groups), 34), np.uint8)
    with np.errstate(over="ignore", invalid="ignore"):
        scale = (np.abs(groups).max(axis=1) / np.float32(127)).astype(np.float16)
        blocks[:, :2] = scale[:, None].view(np.uint8)
        codes = np.clip(np.rint(groups / _divisor(scale)), -127, 127)
        blocks[:, 2:] = codes.astype(np.int8).view(np.uint8)
    return blocks.reshape(-1)


def _to_q4_0(values: Floats) -> Bytes:
    """Q4_0: the value farthest from zero becomes code 0, which stands for -8 scales."""
    groups = values.reshape(-1, 32)
    farthest = np.take_along_axis(groups, np.abs(groups).argmax(axis=1, keepdims=True), axis=1)[:, 0]
    scale = (farthest / np.float32(-8)).astype(np.float16)
    codes = np.rint(groups / _divisor(scale)) + 8
    return _packed([scale], codes)


def _to_q4_1(values: Floats) -> Bytes:
    """Q4_1: codes 0 to 15 from the smallest value to the largest."""
    groups = values.reshape(-1, 32)
    low, high = groups.min(axis=1), groups.max(axis=1)
    scale, minimum = ((high - low) / np.float32(15)).astype(np.float16), low.astype(np.float16)
    codes = np.rint((groups - minimum.astype(np.float32)[:, None]) / _divisor(scale))
    return _packed([scale, minimum], codes)


def _packed(scales: list[NDArray[np.float16]], codes: Floats) -> Bytes:
    """| scales | 16 bytes: codes 0-15 in the low halves, 16-31 in the high ones |"""
    small: Bytes = np.clip(codes, 0, 15).astype(np.uint8)
    nibbles = small[:, :16] | small[:, 16:] << 4
    return np.concatenate([*(scale[:, None].view(np.uint8) for scale in scales), nibbles], axis=1).reshape(-1)


def _divisor(scale: NDArray[np.float16]) -> Floats:
    """[groups, 1]; one where the scale is zero: all values are then zero too, or too small for a float16."""
    return np.where(scale != 0, scale, np.float16(1)).astype(np.float32)[:, None]


def _to_f32(values: Floats) -> Bytes:
    return values.astype("<f4").reshape(-1).view(np.uint8)


def _to_f16(values: Floats) -> Bytes:
    return values.astype("<f2").reshape(-1).view(np.uint8)


def _to_bf16(values: Floats) -> Bytes:
    """The upper half of a float32, rounded; a NaN stays one."""
    bits = values.reshape(-1).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) >> 16
    halves = np.where(np.isnan(values.reshape(-1)), bits >> 16 | 0x40, rounded).astype("<u2")
    return halves.view(np.uint8)


_QUANTISERS: dict[BlockType, Callable[[Floats], Bytes]] = {
    BlockType.F32: _to_f32,
    BlockType.F16: _to_f16,
    BlockType.BF16: _to_bf16,
    BlockType.Q8_0: to_q8_0,
    BlockType.Q4_0: _to_q4_0,
    BlockType.Q4_1: _to_q4_1,
}
