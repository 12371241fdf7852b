"""A GGUF file, mapped into memory: named tensors and typed metadata out of a file nobody should trust.

`GGUFFile.open` checks the whole header (`header.py`); tensor data is read by the system when it is touched.
Not covered: a file that another program shortens while it is mapped. The system then ends the process
(SIGBUS), as for every mapped file; a store should replace files, never shorten them.
The oracle in the tests is the `gguf` package; we do without it because it walks vocabularies item by item.
"""

from __future__ import annotations

import mmap
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from tokenglass.errors import ModelFileError
from tokenglass.formats.blocks import dequantize
from tokenglass.formats.cursor import shown
from tokenglass.formats.header import Header, TensorInfo, Value, read_header
from tokenglass.formats.strings import StringArray

Scalar = TypeVar("Scalar", bool, int, float, str, StringArray)
Number = TypeVar("Number", bound=np.generic)
Default = TypeVar("Default")


class _Required:
    """The default of a key that must be there."""


_REQUIRED = _Required()


class GGUFFile:
    """An open file. Use it in a `with` block, or close it; arrays from `raw` stay valid as long as they live.

    with GGUFFile.open("model.gguf") as file:
        file.get("general.architecture", str)            # 'llama'
        file.tensors["token_embd.weight"].shape          # (49152, 576)
        file.floats("output_norm.weight")                # float32 [576]
    """

    path: Path
    metadata: Mapping[str, Value]
    tensors: Mapping[str, TensorInfo]  # in the order of the file

    def __init__(self, path: Path, data: mmap.mmap, header: Header) -> None:
        self.path = path
        self.metadata = MappingProxyType(header.metadata)
        self.tensors = MappingProxyType(header.tensors)
        self._data: mmap.mmap | None = data

    @classmethod
    def open(cls, path: Path | str) -> GGUFFile:
        """The file at `path`, checked. ModelFileError: no such file, not a GGUF, cut or inconsistent."""
        path = Path(path)
        data = _map(path)
        try:
            problem = _foreign_format(data[:64])
            if problem:
                raise ModelFileError(path, "magic", problem, remedy="A model in the GGUF format is needed")
            return cls(path, data, read_header(data, path))
        except BaseException:
            data.close()
            raise

    def close(self) -> None:
        """Give the mapping back; if arrays from `raw` still live, the last of them does it."""
        if self._data is not None:
            with suppress(BufferError):
                self._data.close()
            self._data = None

    def __enter__(self) -> GGUFFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def data_bytes(self) -> int:
        """Bytes of all tensors together, without header and padding."""
        return sum(info.num_bytes for info in self.tensors.values())

    @overload
    def get(self, key: str, kind: type[Scalar]) -> Scalar: ...
    @overload
    def get(self, key: str, kind: type[Scalar], default: Default) -> Scalar | Default: ...
    @overload
    def get(self, key: str, kind: type[Number]) -> NDArray[Number]: ...
    @overload
    def get(self, key: str, kind: type[Number], default: Default) -> NDArray[Number] | Default: ...
    def get(self, key: str, kind: type, default: object = _REQUIRED) -> object:
        """The value of `key`, of `kind` bool, int, float, str, StringArray, or the numpy type of an array.

        `get("llama.block_count", int)`, `get("tokenizer.ggml.token_type", np.int32)`. An int has any width
        and sign: its range is the caller's to check.
        ModelFileError: another kind, or missing and no default given.
        """
        if key not in self.metadata:
            if default is _REQUIRED:
                raise ModelFileError(self.path, f"key {shown(key)}", "is missing")
            return default
        value = self.metadata[key]
        if isinstance(value, np.ndarray):
            fits = issubclass(kind, np.generic) and value.dtype == kind
        else:
            fits = type(value) is kind  # exactly: True is no int here
        if not fits:
            problem = f"must be {_described(kind)}, not {_actual(value)}"
            raise ModelFileError(self.path, f"key {shown(key)}", problem)
        return value

    def raw(self, name: str) -> NDArray[np.uint8]:
        """The tensor's bytes, uint8 [num_bytes]: a read-only view of the mapped file, no copy."""
        info = self._info(name)
        return np.frombuffer(self._mapped(), np.uint8, info.num_bytes, info.offset)

    def floats(self, name: str) -> NDArray[np.float32]:
        """The tensor as a new float32 array. ModelFileError: its block type is not supported yet."""
        info = self._info(name)
        if not info.type.is_supported:
            problem = f"{info.type.name} is not supported yet"
            raise ModelFileError(self.path, f"tensor {shown(name)}: type", problem)
        return dequantize(info.type, self.raw(name), info.shape)

    def release(self, name: str) -> None:
        """Let the system drop the tensor's whole pages from this process; they are read again when touched.

        Worth calling once a tensor has been packed. Does nothing where the platform has no such call.
        """
        info, data = self._info(name), self._mapped()
        start = -(-info.offset // mmap.PAGESIZE) * mmap.PAGESIZE
        end = (info.offset + info.num_bytes) // mmap.PAGESIZE * mmap.PAGESIZE
        advice = getattr(mmap, "MADV_DONTNEED", None)
        if advice is not None and end > start:
            data.madvise(advice, start, end - start)

    def _info(self, name: str) -> TensorInfo:
        if name not in self.tensors:
            raise ModelFileError(self.path, f"tensor {shown(name)}", "is missing")
        return self.tensors[name]

    def _mapped(self) -> mmap.mmap:
        if self._data is None:
            raise ValueError(f"{self.path.name} is closed")
        return self._data


def _map(path: Path) -> mmap.mmap:
    """The whole file, read-only. Refuses what cannot be mapped with one clear line."""
    try:
        mode = path.stat().st_mode  # asked first: opening a pipe would wait for its other end
        if stat.S_ISDIR(mode):
            raise ModelFileError(path, "file", "this is a folder", remedy="Name the .gguf file inside it")
        if not stat.S_ISREG(mode):
            raise ModelFileError(path, "file", "this is a device or a pipe, not a file")
        with path.open("rb") as file:
            if not file.seek(0, 2):
                raise ModelFileError(path, "file", "the file is empty", remedy="Download it again")
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte
        raise ModelFileError(path, "file", getattr(error, "strerror", None) or str(error)) from None


def _foreign_format(start: bytes) -> str | None:
    """What the file is instead of a GGUF, as far as its first bytes tell; None for a GGUF."""
    if start.startswith(b"GGUF"):
        return None
    if start.startswith(b"version https://git-lfs"):
        return "this is a git-lfs pointer: the file itself was never downloaded (git lfs pull)"
    if start[8:9] == b"{" and int.from_bytes(start[:8], "little") < 1 << 32:
        return "this is a safetensors file"
    if start.startswith(b"PK"):
        return "this is a zip archive, probably a PyTorch checkpoint"
    if start.lstrip().lower().startswith((b"<!doctype", b"<html")):
        return "this is a web page: the download has failed"
    if start.startswith((b"lmgg", b"fmgg", b"tjgg", b"algg")):
        return "this is a GGML file from before GGUF"
    if all(byte >= 32 or byte in b"\t\n\r" for byte in start):
        return "this is a text file"
    return "this is not a GGUF file"


def _described(kind: type) -> str:
    return f"an array of {kind.__name__}" if issubclass(kind, np.generic) else _NAMES[kind]


def _actual(value: Value) -> str:
    return f"an array of {value.dtype}" if isinstance(value, np.ndarray) else _NAMES[type(value)]


_NAMES = {
    bool: "a bool",
    int: "an integer",
    float: "a float",
    str: "a string",
    StringArray: "an array of strings",
}
