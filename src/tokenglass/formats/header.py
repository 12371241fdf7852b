"""Reads the header of a GGUF file: counts, metadata and tensor infos, each number checked before it is used.

    | "GGUF" | version | tensor_count | kv_count | metadata | tensor infos | padding | tensor data |

The file is hostile until proven otherwise: a count is held against the bytes that are left before anything is
made from it, and every fault is a ModelFileError that names its field. Python's integers do not overflow.
What the keys mean is not known here. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import math
import mmap
import struct
from array import array
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tokenglass.formats.blocks import BLOCK_TYPES
from tokenglass.formats.cursor import TRUNCATED, Cursor, shown
from tokenglass.formats.strings import LENGTH_BYTES, StringArray
from tokenglass.formats.tensor_file import TensorInfo, Value

MAX_KEYS = 1 << 16
MAX_TENSORS = 1 << 16
MAX_KEY_BYTES = (1 << 16) - 1  # the format's own limit
MAX_STRING_BYTES = 1 << 24
MAX_ARRAY_LEN = 1 << 22  # the largest vocabularies have 2^18 tokens
MAX_DIMS = 4
DEFAULT_ALIGNMENT = 32
MIN_KEY_VALUE_BYTES = 8 + 1 + 4 + 1  # key length, key, type, value
MIN_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8  # name length, name, dimensions, one dimension, type, offset

_U64 = struct.Struct("<Q")
_SCALARS = {  # value type -> its bytes
    0: "<u1",
    1: "<i1",
    2: "<u2",
    3: "<i2",
    4: "<u4",
    5: "<i4",
    6: "<f4",
    10: "<u8",
    11: "<i8",
    12: "<f8",
}
_UINT32, _BOOL, _STRING, _ARRAY = 4, 7, 8, 9


@dataclass(frozen=True)
class Header:
    """Invariant: every tensor lies inside the file, aligned, and none overlaps another."""

    version: int
    metadata: dict[str, Value]
    tensors: dict[str, TensorInfo]


def read_header(data: mmap.mmap, path: Path) -> Header:
    """The checked header of a mapped file; `path` is for messages only. ModelFileError: anything is wrong."""
    cursor = Cursor(data, path)
    version = _version(cursor)
    tensor_count = cursor.count("tensor_count", MIN_TENSOR_BYTES, MAX_TENSORS)
    kv_count = cursor.count("kv_count", MIN_KEY_VALUE_BYTES, MAX_KEYS)
    metadata: dict[str, Value] = {}
    for index in range(kv_count):
        key = cursor.text(f"key {index}", MAX_KEY_BYTES)
        field = f"key {shown(key)}" if key else f"key {index}"
        if not key or key in metadata:
            cursor.fail(field, "appears twice" if key else "is empty")
        metadata[key] = _value(cursor, field, must_be_uint32=key == "general.alignment")
    alignment = _alignment(cursor, metadata.get("general.alignment", DEFAULT_ALIGNMENT))
    tensors: dict[str, TensorInfo] = {}
    for index in range(tensor_count):
        info = _tensor_info(cursor, index, alignment)
        if info.name in tensors:
            cursor.fail(f"tensor {shown(info.name)}", "appears twice")
        tensors[info.name] = info
    return Header(version, metadata, _placed(cursor, tensors, alignment))


def _version(cursor: Cursor) -> int:
    if cursor.take(4, "magic") != b"GGUF":
        cursor.fail("magic", "this is not a GGUF file")
    version = cursor.u32("version")
    if version in (1 << 24, 2 << 24, 3 << 24):
        cursor.fail("version", "the file is big-endian, and only little-endian files are read")
    if version not in (2, 3):
        cursor.fail("version", f"GGUF version {version} is not supported, only 2 and 3")
    return version


def _value(cursor: Cursor, field: str, *, must_be_uint32: bool) -> Value:
    type_id = cursor.u32(field)
    if must_be_uint32 and type_id != _UINT32:
        cursor.fail(field, f"must be a uint32 (type 4), not type {type_id}")
    if type_id == _STRING:
        return cursor.text(field, MAX_STRING_BYTES)
    if type_id == _ARRAY:
        return _array(cursor, field)
    if type_id == _BOOL:
        return bool(_bools(cursor, field, 1)[0])
    if type_id not in _SCALARS:
        cursor.fail(field, f"value type {type_id} is unknown")
    number: int | float = cursor.numbers(_SCALARS[type_id], 1, field)[0].item()
    return number


def _array(cursor: Cursor, field: str) -> StringArray | NDArray[np.generic]:
    type_id = cursor.u32(field)
    if type_id == _ARRAY:
        cursor.fail(field, "arrays of arrays are not supported")
    if type_id == _STRING:
        return _strings(cursor, field, cursor.count(field, LENGTH_BYTES, MAX_ARRAY_LEN))
    if type_id != _BOOL and type_id not in _SCALARS:
        cursor.fail(field, f"array type {type_id} is unknown")
    dtype = np.dtype(_SCALARS.get(type_id, "<u1"))
    length = cursor.count(field, dtype.itemsize, MAX_ARRAY_LEN)
    return _bools(cursor, field, length) if type_id == _BOOL else cursor.numbers(dtype, length, field)


def _bools(cursor: Cursor, field: str, length: int) -> NDArray[np.bool_]:
    numbers = cursor.numbers("<u1", length, field)
    if length and numbers.max() > 1:
        cursor.fail(field, f"a bool must be 0 or 1, not {numbers.max()}")
    return numbers.view(np.bool_)


def _strings(cursor: Cursor, field: str, length: int) -> StringArray:
    """Walk from length to length: each says where the next one stands. About 0.1 µs a string."""
    data, start, unpack = cursor.data, cursor.at, _U64.unpack_from
    offsets = array("q", [0])
    append, at = offsets.append, start
    try:
        for _ in range(length):
            at += LENGTH_BYTES + unpack(data, at)[0]
            append(at - start)
    except (struct.error, OverflowError):  # a length pointed past the file's end, or past the address space
        cursor.fail(field, f"string {len(offsets) - 1} of {length} is past the end of the file", TRUNCATED)
    return StringArray(cursor.take(at - start, field), np.frombuffer(offsets, np.int64))


def _alignment(cursor: Cursor, alignment: Value) -> int:
    if not isinstance(alignment, int) or alignment < 8 or alignment & (alignment - 1):
        cursor.fail("key general.alignment", f"must be a power of two of at least 8, not {alignment}")
    return alignment


def _tensor_info(cursor: Cursor, index: int, alignment: int) -> TensorInfo:
    """One tensor info; its offset is still counted from the start of the tensor data."""
    name = cursor.text(f"tensor {index}: name", MAX_KEY_BYTES)
    field = f"tensor {shown(name)}"
    if not name:
        cursor.fail(f"tensor {index}: name", "is empty")
    num_dims = cursor.u32(f"{field}: dimensions")
    if not 1 <= num_dims <= MAX_DIMS:
        cursor.fail(f"{field}: dimensions", f"there are {num_dims}, and 1 to {MAX_DIMS} are possible")
    shape = tuple(cursor.u64(f"{field}: dimensions") for _ in range(num_dims))[::-1]
    type_id = cursor.u32(f"{field}: type")
    if type_id not in BLOCK_TYPES:
        cursor.fail(f"{field}: type", f"block type {type_id} is unknown")
    block_type = BLOCK_TYPES[type_id]
    if not math.prod(shape):
        cursor.fail(f"{field}: dimensions", f"one of {shape} is zero")
    if shape[-1] % block_type.block_len:
        problem = f"rows of {shape[-1]} are not whole {block_type.name} blocks of {block_type.block_len}"
        cursor.fail(f"{field}: dimensions", problem)
    num_bytes = block_type.num_bytes(shape)
    if num_bytes > len(cursor.data):
        problem = f"{shape} in {block_type.name} takes {num_bytes} bytes, and the file has {len(cursor.data)}"
        cursor.fail(f"{field}: dimensions", problem, TRUNCATED)
    offset = cursor.u64(f"{field}: offset")
    if offset % alignment:
        cursor.fail(f"{field}: offset", f"{offset} is not a multiple of the alignment, {alignment}")
    return TensorInfo(name, shape, block_type, offset, num_bytes)


def _placed(cursor: Cursor, tensors: dict[str, TensorInfo], alignment: int) -> dict[str, TensorInfo]:
    """The tensors with offsets from the file's start, each inside the file and clear of the others."""
    data_start = -(-cursor.at // alignment) * alignment
    placed = {
        name: TensorInfo(name, info.shape, info.type, data_start + info.offset, info.num_bytes)
        for name, info in tensors.items()
    }
    end, previous = data_start, ""
    for info in sorted(placed.values(), key=lambda info: info.offset):
        field = f"tensor {shown(info.name)}: offset"
        if info.offset < end:
            cursor.fail(field, f"overlaps the tensor {shown(previous)}")
        end, previous = info.offset + info.num_bytes, info.name
        if end > len(cursor.data):
            cursor.fail(field, f"ends at byte {end}, and the file has {len(cursor.data)}", TRUNCATED)
    return placed
