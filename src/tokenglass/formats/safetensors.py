"""A safetensors file, mapped into memory: named tensors out of a file nobody should trust.

    | header_len uint64 | header: JSON, padded with spaces | tensor data, without a gap |

    {"__metadata__": {"format": "pt"}, "norm.weight": {"dtype": "F32", "shape": [8], "data_offsets": [0, 32]}}

Offsets count from the start of the data. As in the reference, the tensors must cover the data exactly: no
gap, no overlap, nothing behind. Format: https://github.com/huggingface/safetensors (README, "Format").
"""

from __future__ import annotations

import math
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tokenglass.errors import ModelFileError
from tokenglass.formats.blocks import BlockType
from tokenglass.formats.cursor import TRUNCATED, shown
from tokenglass.formats.json_file import parse_object
from tokenglass.formats.mapped import MappedFile
from tokenglass.formats.tensor_file import TensorFile, TensorInfo

MAX_HEADER_BYTES = 100_000_000  # as in the reference
MAX_TENSORS = 1 << 16
MAX_DIMS = 8
MAX_COUNT = 1 << 63
DTYPE_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E5M2": 1, "F8_E4M3": 1, "F8_E8M0": 1, "I16": 2, "U16": 2, "F16": 2,
    "BF16": 2, "I32": 4, "U32": 4, "F32": 4, "F64": 8, "I64": 8, "U64": 8, "C64": 8,
}  # fmt: skip


class SafetensorsFile(TensorFile):
    """An open file.

    with SafetensorsFile("model.safetensors") as file:
        file.tensors["model.norm.weight"].shape          # (576,)
        file.floats("model.norm.weight")                 # float32 [576]
    """

    def __init__(self, path: Path | str) -> None:
        """The file at `path`, checked. ModelFileError: no such file, not safetensors, cut, inconsistent."""
        self.path = Path(path)
        self._mapped = MappedFile(self.path)
        try:
            tensors, others = _read_header(self._mapped)
        except BaseException:
            self._mapped.close()
            raise
        self.tensors, self.left_out = MappingProxyType(tensors), MappingProxyType(others)

    def raw(self, name: str) -> NDArray[np.uint8]:
        """The tensor's bytes, uint8 [num_bytes]: a read-only view of the mapped file, no copy."""
        info = self._info(name)
        return self._mapped.view(info.offset, info.num_bytes, aligned_to=info.type.block_bytes)

    def release(self, name: str, num_bytes: int | None = None) -> None:
        """Drops the tensor's whole pages from this process, where the platform has a call for it."""
        info = self._info(name)
        self._mapped.release(info.offset, info.num_bytes if num_bytes is None else num_bytes)

    def close(self) -> None:
        """Gives the mapping back; if arrays from `raw` still live, the last of them does it."""
        self._mapped.close()


def _read_header(mapped: MappedFile) -> tuple[dict[str, TensorInfo], dict[str, str]]:
    """The tensors, and the dtypes of those whose type we have no use for; all of them checked."""
    data, path = mapped.data, mapped.path
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > len(data) - 8:
        problem = f"{8 + length} bytes are needed and {len(data)} are left"
        raise ModelFileError(path, "header length", problem, remedy=TRUNCATED)
    if length > MAX_HEADER_BYTES:
        raise ModelFileError(
            path, "header length", f"{length} items, and at most {MAX_HEADER_BYTES} are read"
        )
    if data[8:9] != b"{":
        raise ModelFileError(path, "header", "this is not a safetensors file")
    header = parse_object(data[8 : 8 + length], path, "header")
    _check_metadata(header.pop("__metadata__", {}), path)
    if len(header) > MAX_TENSORS:
        raise ModelFileError(path, "header", f"{len(header)} items, and at most {MAX_TENSORS} are read")
    tensors: dict[str, TensorInfo] = {}
    others: dict[str, str] = {}
    end, data_len = 0, len(data) - 8 - length
    for name, dtype, shape, begin, finish in sorted(
        (_entry(path, name, entry) for name, entry in header.items()), key=lambda entry: entry[3:]
    ):
        field = f"tensor {shown(name)}: data_offsets"
        if begin != end:
            _broken(path, field, f"begins at byte {begin}, and the tensor before it ends at {end}")
        end = finish
        if end > data_len:
            _broken(path, field, f"ends at byte {end}, and the file has {data_len}", TRUNCATED)
        if dtype in BlockType.__members__:
            tensors[name] = TensorInfo(name, shape, BlockType[dtype], 8 + length + begin, finish - begin)
        else:
            others[name] = dtype
    if end != data_len:
        _broken(path, "data", f"{data_len - end} bytes belong to no tensor")
    return tensors, others


def _entry(path: Path, name: str, entry: Any) -> tuple[str, str, tuple[int, ...], int, int]:
    """name, dtype, shape, begin and end of one tensor, in agreement with each other."""
    field = f"tensor {shown(name)}"
    if not name:
        _broken(path, field, "is empty")
    if not isinstance(entry, dict):
        _broken(path, field, "must be a JSON object")
    dtype, shape, offsets = (
        entry.get("dtype"),
        _counts(entry.get("shape")),
        _counts(entry.get("data_offsets")),
    )
    if not isinstance(dtype, str) or dtype not in DTYPE_BYTES:
        _broken(path, f"{field}: dtype", f"{shown(str(dtype)[:80])} is unknown")
    if shape is None or len(shape) > MAX_DIMS:
        _broken(path, f"{field}: shape", f"must be a list of at most {MAX_DIMS} counts")
    if offsets is None or len(offsets) != 2 or offsets[0] > offsets[1]:
        _broken(path, f"{field}: data_offsets", "must be two counts, the smaller one first")
    num_bytes = math.prod(shape) * DTYPE_BYTES[dtype]
    if num_bytes != offsets[1] - offsets[0]:
        problem = f"{dtype} of shape {list(shape)} takes {num_bytes} bytes, not {offsets[1] - offsets[0]}"
        _broken(path, f"{field}: data_offsets", problem)
    return name, dtype, shape, offsets[0], offsets[1]


def _counts(value: Any) -> tuple[int, ...] | None:
    """The list as counts below 2^63; None where it is anything else."""
    if isinstance(value, list) and all(type(item) is int and 0 <= item < MAX_COUNT for item in value):
        return tuple(value)
    return None


def _check_metadata(metadata: Any, path: Path) -> None:
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ModelFileError(path, "__metadata__", "must map names to strings")


def _broken(path: Path, field: str, problem: str, remedy: str | None = None) -> NoReturn:
    raise ModelFileError(path, field, problem, remedy=remedy)
