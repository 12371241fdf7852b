"""A small deterministic GGUF writer for tests, and simple quantisers; nothing is shared with the reader.

It writes what it is told, wrong or right: a test of broken files patches the bytes or asks for odd values.
Real models are written by llama.cpp's tools; this file leaves out everything a test does not need.
Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# name -> (id in the file, values per block, bytes per block)
TYPES: dict[str, tuple[int, int, int]] = {
    "F32": (0, 1, 4),
    "F16": (1, 1, 2),
    "BF16": (30, 1, 2),
    "Q4_0": (2, 32, 18),
    "Q4_1": (3, 32, 20),
    "Q5_0": (6, 32, 22),
    "Q5_1": (7, 32, 24),
    "Q8_0": (8, 32, 34),
    "Q2_K": (10, 256, 84),
    "Q3_K": (11, 256, 110),
    "Q4_K": (12, 256, 144),
    "Q5_K": (13, 256, 176),
    "Q6_K": (14, 256, 210),
    "IQ4_NL": (20, 32, 18),
    "IQ4_XS": (23, 256, 136),
}
UINT8, INT8, UINT16, INT16, UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY, UINT64, INT64, FLOAT64 = range(13)
_NUMPY_IDS = {
    "uint8": UINT8, "int8": INT8, "uint16": UINT16, "int16": INT16, "uint32": UINT32, "int32": INT32,
    "float32": FLOAT32, "bool": BOOL, "uint64": UINT64, "int64": INT64, "float64": FLOAT64,
}  # fmt: skip

Tensor = tuple[str, NDArray[np.float32]] | tuple[str, tuple[int, ...], bytes]


def write_gguf(
    path: Path,
    metadata: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    *,
    alignment: int = 32,
    version: int = 3,
) -> Path:
    """Write a GGUF file and return its path; equal arguments give equal bytes.

    A metadata value is a str or bytes (string), bool, int (uint32), float (float32), numpy scalar (its own
    type), numpy array (array of its type), or a list of str/bytes or of ints (int32 array).
    A tensor is `(type, float32 array)`, quantised here, or `(type, shape, raw bytes)`, taken as it is.
    `general.alignment` is added when `alignment` is not 32.
    """
    path.write_bytes(gguf_bytes(metadata, tensors, alignment=alignment, version=version))
    return path


def gguf_bytes(
    metadata: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    *,
    alignment: int = 32,
    version: int = 3,
) -> bytes:
    """The bytes of the file: magic, version, counts | metadata | tensor infos | padding | tensor data."""
    if alignment != 32:
        metadata = {**metadata, "general.alignment": alignment}
    header = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    header += b"".join(pack_string(key) + pack_value(value) for key, value in metadata.items())
    data = bytearray()
    for name, tensor in tensors.items():
        shape = tensor[1].shape if isinstance(tensor[1], np.ndarray) else tensor[1]
        raw = quantise(tensor[0], tensor[1]) if len(tensor) == 2 else tensor[2]
        header += pack_tensor_info(name, shape, TYPES[tensor[0]][0], len(data))
        data += raw + bytes(-len(raw) % alignment)
    return header + bytes(-len(header) % alignment) + bytes(data)


def pack_string(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def pack_value(value: Any) -> bytes:
    """The value type (uint32) and then the value, as they stand behind a key."""
    match value:
        case np.generic():  # first: a numpy float64 is a Python float too
            return struct.pack("<I", _NUMPY_IDS[value.dtype.name]) + value.tobytes()
        case str() | bytes():
            return struct.pack("<I", STRING) + pack_string(value)
        case bool():
            return struct.pack("<IB", BOOL, value)
        case int():
            return struct.pack("<II", UINT32, value)
        case float():
            return struct.pack("<If", FLOAT32, value)
        case np.ndarray():
            return struct.pack("<IIQ", ARRAY, _NUMPY_IDS[value.dtype.name], value.size) + value.tobytes()
        case list() if all(isinstance(item, str | bytes) for item in value):
            return struct.pack("<IIQ", ARRAY, STRING, len(value)) + b"".join(map(pack_string, value))
        case list():
            return pack_value(np.array(value, np.int32))
    raise TypeError(f"no GGUF form for {type(value).__name__}")


def pack_tensor_info(name: str | bytes, shape: Sequence[int], type_id: int, offset: int) -> bytes:
    """`shape` is in numpy order; the file counts dimensions from the innermost."""
    dims = struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
    return pack_string(name) + dims + struct.pack("<IQ", type_id, offset)


def quantise(type_name: str, values: NDArray[np.float32]) -> bytes:
    """`values` float32 [..., cols] in the named type; cols must be a multiple of the block length."""
    if type_name not in _QUANTISERS:
        raise NotImplementedError(f"no quantiser for {type_name}: use random_blocks")
    block_len = TYPES[type_name][1]
    if values.shape[-1] % block_len:
        raise ValueError(f"rows of {values.shape[-1]} are not a multiple of {block_len}")
    blocks = np.ascontiguousarray(values, np.float32).reshape(-1, block_len)
    return _QUANTISERS[type_name](blocks).tobytes()


def random_blocks(type_name: str, num_blocks: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Random but valid raw blocks, uint8 [num_blocks, block_bytes]: every code occurs, every float is finite.

    Scales lie in ±2^-6, so that a matrix of such blocks can serve as weights for a kernel test.
    """
    _, block_len, block_bytes = TYPES[type_name]
    if block_len == 1:
        return np.frombuffer(quantise(type_name, _scales(rng, num_blocks, 1)), np.uint8).reshape(
            num_blocks, -1
        )
    raw = rng.integers(0, 256, (num_blocks, block_bytes), dtype=np.uint8)
    for at in SCALE_OFFSETS[type_name]:
        raw[:, at : at + 2] = _scales(rng, num_blocks, 1).astype("<f2").view(np.uint8)
    return raw


def _scales(rng: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    return rng.uniform(-(2.0**-6), 2.0**-6, shape).astype(np.float32)


# Where the fp16 scales stand in a block: d first and then the minimum, but at the end in Q2_K, Q3_K and Q6_K.
SCALE_OFFSETS: dict[str, tuple[int, ...]] = {
    "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "IQ4_NL": (0,),
    "Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,),
}  # fmt: skip


def _f32(x: NDArray[np.float32]) -> NDArray[Any]:
    return x.astype("<f4")


def _f16(x: NDArray[np.float32]) -> NDArray[Any]:
    return x.astype("<f2")


def _bf16(x: NDArray[np.float32]) -> NDArray[Any]:
    bits = x.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")  # round half to even


def _symmetric(x: NDArray[np.float32], bits: int) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """d fp16 [blocks, 1] and codes [blocks, 32] for value = d * (code - 2^(bits-1))."""
    half = 1 << (bits - 1)
    extreme = np.take_along_axis(x, np.abs(x).argmax(axis=1, keepdims=True), axis=1)
    d = (extreme / -half).astype("<f2")
    codes = np.rint(x * _inverse(d)) + half
    return d, codes.clip(0, 2 * half - 1).astype(np.uint8)


def _affine(x: NDArray[np.float32], bits: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.uint8]]:
    """d and m fp16 [blocks, 1] and codes [blocks, 32] for value = d * code + m."""
    low, high = x.min(axis=1, keepdims=True), x.max(axis=1, keepdims=True)
    d, m = ((high - low) / (2**bits - 1)).astype("<f2"), low.astype("<f2")
    codes = np.rint((x - m.astype(np.float32)) * _inverse(d))
    return d, m, codes.clip(0, 2**bits - 1).astype(np.uint8)


def _inverse(d: NDArray[Any]) -> NDArray[np.float32]:
    wide = d.astype(np.float32)
    return np.divide(1, wide, out=np.zeros_like(wide), where=wide != 0)


def _low_bits(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Byte i of the 16 holds code i in its low half and code i + 16 in its high half."""
    low, high = codes[:, :16] & 15, codes[:, 16:] << 4
    return (low | high).astype(np.uint8)


def _fifth_bits(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Bit i of the 32 is bit 4 of code i, as 4 bytes."""
    return np.packbits(codes >> 4, axis=1, bitorder="little")


def _blocks(*parts: NDArray[Any]) -> NDArray[np.uint8]:
    views: list[NDArray[np.uint8]] = [np.ascontiguousarray(part).view(np.uint8) for part in parts]
    return np.concatenate(views, axis=1)


def _q4_0(x: NDArray[np.float32]) -> NDArray[np.uint8]:
    d, codes = _symmetric(x, 4)
    return _blocks(d, _low_bits(codes))


def _q4_1(x: NDArray[np.float32]) -> NDArray[np.uint8]:
    d, m, codes = _affine(x, 4)
    return _blocks(d, m, _low_bits(codes))


def _q5_0(x: NDArray[np.float32]) -> NDArray[np.uint8]:
    d, codes = _symmetric(x, 5)
    return _blocks(d, _fifth_bits(codes), _low_bits(codes))


def _q5_1(x: NDArray[np.float32]) -> NDArray[np.uint8]:
    d, m, codes = _affine(x, 5)
    return _blocks(d, m, _fifth_bits(codes), _low_bits(codes))


def _q8_0(x: NDArray[np.float32]) -> NDArray[np.uint8]:
    d = (np.abs(x).max(axis=1, keepdims=True) / 127).astype("<f2")
    return _blocks(d, np.rint(x * _inverse(d)).clip(-128, 127).astype(np.int8).view(np.uint8))


_QUANTISERS: dict[str, Callable[[NDArray[np.float32]], NDArray[Any]]] = {
    "F32": _f32, "F16": _f16, "BF16": _bf16,
    "Q4_0": _q4_0, "Q4_1": _q4_1, "Q5_0": _q5_0, "Q5_1": _q5_1, "Q8_0": _q8_0,
}  # fmt: skip
