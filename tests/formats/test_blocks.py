"""Every block type unpacks to the same bits as the `gguf` package, which follows ggml's own code."""

from __future__ import annotations

import warnings

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.tiny_gguf import SCALE_OFFSETS, random_blocks
from tokenglass.formats.blocks import BLOCK_TYPES, BlockType, dequantize

SUPPORTED = [block_type for block_type in BlockType if block_type.is_supported]
QUANTISED = [block_type for block_type in SUPPORTED if block_type.block_len > 1]
FP16_EDGES = np.array([0.0, -0.0, 2.0**-24, -(2.0**-24), 2.0**-14, 1.0, 65504.0, -65504.0], "<f2")


def oracle(block_type: BlockType, blocks: NDArray[np.uint8]) -> NDArray[np.float32]:
    values = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType(block_type.value))
    return np.asarray(values, np.float32)


def assert_same_bits(ours: NDArray[np.float32], theirs: NDArray[np.float32]) -> None:
    assert ours.dtype == np.float32
    assert np.array_equal(ours.reshape(-1).view(np.uint32), theirs.reshape(-1).view(np.uint32))


def test_the_table_of_types_agrees_with_the_gguf_package() -> None:
    for block_type in BlockType:
        theirs = gguf.GGMLQuantizationType(block_type.value)
        assert theirs.name == block_type.name
        assert gguf.GGML_QUANT_SIZES[theirs] == (block_type.block_len, block_type.block_bytes)
        assert BLOCK_TYPES[block_type.value] is block_type


def test_the_promised_types_are_supported() -> None:
    names = {block_type.name for block_type in SUPPORTED}
    assert names == {"F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"} | {
        *("IQ4_NL", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K")
    }


@pytest.mark.parametrize("block_type", SUPPORTED, ids=lambda block_type: block_type.name)
def test_random_blocks_unpack_to_the_bits_of_the_gguf_package(block_type: BlockType) -> None:
    rows, cols = 12, 1024
    num_blocks = rows * cols // block_type.block_len
    blocks = random_blocks(block_type.name, num_blocks, np.random.default_rng(block_type.value))
    ours = dequantize(block_type, blocks.reshape(-1), (rows, cols))
    assert ours.shape == (rows, cols)
    assert_same_bits(ours, oracle(block_type, blocks))


@pytest.mark.parametrize("block_type", QUANTISED, ids=lambda block_type: block_type.name)
def test_edge_scales_unpack_to_the_bits_of_the_gguf_package(block_type: BlockType) -> None:
    """Zero, negative zero, the smallest and the largest fp16, in both places where a type has two."""
    blocks = random_blocks(block_type.name, len(FP16_EDGES) ** 2, np.random.default_rng(0))
    first, second = (grid.reshape(-1, 1).view(np.uint8) for grid in np.meshgrid(FP16_EDGES, FP16_EDGES))
    for byte, edges in zip(SCALE_OFFSETS[block_type.name], (first, second), strict=False):
        blocks[:, byte : byte + 2] = edges
    shape = (len(blocks), block_type.block_len)
    assert_same_bits(dequantize(block_type, blocks.reshape(-1), shape), oracle(block_type, blocks))


@pytest.mark.parametrize("bits", [0x0000, 0x8000, 0x0001, 0x03FF, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00])
def test_every_kind_of_half_float_widens_exactly(bits: int) -> None:
    raw = np.array([bits], "<u2").view(np.uint8)
    assert_same_bits(dequantize(BlockType.F16, raw, (1,)), raw.view("<f2").astype(np.float32))
    assert dequantize(BlockType.BF16, raw, (1,)).view(np.uint32)[0] == bits << 16


def test_a_tensor_longer_than_one_chunk_is_unpacked_whole() -> None:
    blocks = random_blocks("Q8_0", 9001, np.random.default_rng(0))
    assert_same_bits(
        dequantize(BlockType.Q8_0, blocks.reshape(-1), (9001, 32)), oracle(BlockType.Q8_0, blocks)
    )


def test_infinite_scales_give_no_warning() -> None:
    blocks = np.full((1, 20), 0, np.uint8)
    blocks[0, :4] = np.array([np.inf, -np.inf], "<f2").view(np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(dequantize(BlockType.Q4_1, blocks.reshape(-1), (32,))).all()


def test_the_result_is_the_callers_own_array() -> None:
    raw = np.zeros(8, np.uint8)
    values = dequantize(BlockType.F32, raw, (2,))
    values[:] = 1
    assert not raw.any()


def test_an_unsupported_type_is_named() -> None:
    with pytest.raises(ValueError, match="IQ4_XS is not supported yet"):
        dequantize(BlockType.IQ4_XS, np.zeros(136, np.uint8), (256,))


@pytest.mark.parametrize(("num_bytes", "shape"), [(33, (32,)), (35, (32,)), (34, (16, 2)), (34, (2, 32))])
def test_bytes_of_another_length_are_refused(num_bytes: int, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="Q8_0"):
        dequantize(BlockType.Q8_0, np.zeros(num_bytes, np.uint8), shape)
