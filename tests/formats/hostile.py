"""Pieces of GGUF headers that need not be true: the counts, types and lengths are whatever a test says."""

from __future__ import annotations

import struct
from collections.abc import Callable

from tests.support.tiny_gguf import ARRAY, pack_string, pack_tensor_info
from tokenglass.formats import GGUFFile

F32, Q4_0, Q8_0 = 0, 2, 8
NUM_DATA_BYTES = 256  # of tensor data, behind every header made here
Open = Callable[[bytes], GGUFFile]


def header(
    *,
    pairs: bytes = b"",
    kv_count: int = 0,
    infos: bytes = b"",
    tensor_count: int = 0,
    alignment: int = 32,
) -> bytes:
    """A file from raw pieces: the counts need not be true. 256 bytes of tensor data follow."""
    start = b"GGUF" + struct.pack("<IQQ", 3, tensor_count, kv_count) + pairs + infos
    return start + bytes(-len(start) % alignment) + bytes(NUM_DATA_BYTES)


def pair(key: str | bytes, value: bytes) -> bytes:
    return header(pairs=pack_string(key) + value, kv_count=1)


def tensor(name: str | bytes, shape: tuple[int, ...], type_id: int = F32, offset: int = 0) -> bytes:
    return header(infos=pack_tensor_info(name, shape, type_id, offset), tensor_count=1)


def tensors(*infos: bytes) -> bytes:
    return header(infos=b"".join(infos), tensor_count=len(infos))


def array_of(type_id: int, length: int, items: bytes = b"") -> bytes:
    return struct.pack("<IIQ", ARRAY, type_id, length) + items


def alignment(value: bytes) -> bytes:
    return pair("general.alignment", value)
