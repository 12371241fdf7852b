"""Writes a model as a GGUF file, version 3: what `header.py` reads.

Tensors are made one after the other, so memory holds one. Readers: the `gguf` package and llama.cpp,
both compared in tests. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from tokenglass.formats.blocks import BlockType
from tokenglass.formats.header import DEFAULT_ALIGNMENT
from tokenglass.formats.strings import StringArray
from tokenglass.formats.tensor_file import ModelSource, TensorInfo, Value
from tokenglass.formats.whole_file import whole_file

_UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY, _UINT64, _INT64 = 4, 5, 6, 7, 8, 9, 10, 11
_ARRAY_TYPES = {
    "uint8": 0, "int8": 1, "uint16": 2, "int16": 3, "uint32": 4, "int32": 5, "float32": 6, "bool": 7,
    "uint64": 10, "int64": 11, "float64": 12,
}  # fmt: skip
_FILE_TYPES = {  # general.file_type: what most of the matrices are
    BlockType.F32: 0, BlockType.F16: 1, BlockType.Q4_0: 2, BlockType.Q4_1: 3, BlockType.Q8_0: 7,
    BlockType.BF16: 32,
}  # fmt: skip


def write_gguf(path: Path, model: ModelSource, *, progress: Callable[[int], None] = lambda _: None) -> None:
    """Writes `model` to `path`; `progress` hears of the tensor bytes written. TokenglassError: it cannot."""
    infos = list(model.tensors.values())
    metadata = {**model.metadata, **_general(infos)}
    metadata.pop("general.alignment", None)
    with whole_file(path) as file:
        file.write(_header(metadata, infos))
        for info in infos:
            file.write(model.raw(info.name).data)
            file.write(_padding(info.num_bytes))
            model.release(info.name)
            progress(info.num_bytes)


def _general(infos: list[TensorInfo]) -> dict[str, Value]:
    """The type that most values have, by GGUF's number for it, where there is one."""
    sizes: dict[BlockType, int] = {}
    for info in infos:
        if len(info.shape) > 1:
            sizes[info.type] = sizes.get(info.type, 0) + info.num_bytes
    most = max(sizes, key=lambda block_type: sizes[block_type], default=BlockType.F32)
    keys: dict[str, Value] = {"general.quantization_version": 2}
    return keys | ({"general.file_type": _FILE_TYPES[most]} if most in _FILE_TYPES else {})


def _header(metadata: Mapping[str, Value], infos: list[TensorInfo]) -> bytes:
    parts = [b"GGUF", struct.pack("<IQQ", 3, len(infos), len(metadata))]
    parts += [part for key, value in metadata.items() for part in (_string(key.encode()), _value(value))]
    offset = 0
    for info in infos:
        dims = struct.pack(f"<I{len(info.shape)}Q", len(info.shape), *reversed(info.shape))
        parts += [_string(info.name.encode()), dims, struct.pack("<IQ", info.type, offset)]
        offset += info.num_bytes + len(_padding(info.num_bytes))
    header = b"".join(parts)
    return header + _padding(len(header))


def _padding(num_bytes: int) -> bytes:
    return bytes(-num_bytes % DEFAULT_ALIGNMENT)


def _string(raw: bytes) -> bytes:
    return struct.pack("<Q", len(raw)) + raw


def _value(value: Value) -> bytes:
    """The value type and the value. Whole numbers become the narrowest of uint32, int32, uint64 and int64."""
    match value:
        case bool():
            return struct.pack("<IB", _BOOL, value)
        case int():
            kinds = ((_UINT32, "I"), (_INT32, "i"), (_UINT64, "Q"), (_INT64, "q"))
            for kind, code in kinds:
                low, high = (0, 1) if code.isupper() else (-1, 0.5)
                bits = 8 * struct.calcsize(f"<{code}")
                if low * 2 ** (bits - 1) <= value < high * 2**bits:
                    return struct.pack(f"<I{code}", kind, value)
            raise ValueError(f"{value} has more than 64 bits")
        case float():
            return struct.pack("<If", _FLOAT32, value)
        case str():
            return struct.pack("<I", _STRING) + _string(value.encode())
        case StringArray():
            start, end = value.offsets[0], value.offsets[-1]
            return struct.pack("<IIQ", _ARRAY, _STRING, len(value)) + value.blob[start:end]
        case np.ndarray():
            kind = _ARRAY_TYPES[value.dtype.name]
            return struct.pack("<IIQ", _ARRAY, kind, value.size) + np.ascontiguousarray(value).tobytes()
