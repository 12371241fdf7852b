"""What every kind of model file gives: named tensors, and typed metadata under GGUF's keys.

`TensorFile` is the smallest part that all kinds share; `ModelSource` adds the metadata that a model and a
tokenizer ask for. Kinds: `gguf.py`, `safetensors.py`, `torch_file.py`; `hf_folder.py` shows a Hugging Face
folder as the GGUF that llama.cpp's converter would write of it; `requantised.py` shows other types.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from tokenglass.errors import ModelFileError
from tokenglass.formats.blocks import BlockType, dequantize
from tokenglass.formats.cursor import shown
from tokenglass.formats.strings import StringArray

Value = bool | int | float | str | StringArray | NDArray[np.generic]
Scalar = TypeVar("Scalar", bool, int, float, str, StringArray)
Number = TypeVar("Number", bound=np.generic)
Default = TypeVar("Default")


class _Required:
    """The default of a key that must be there."""


_REQUIRED = _Required()


@dataclass(frozen=True)
class TensorInfo:
    """A tensor's place: `shape` in numpy order ([rows, cols]); `offset` from the start of its file, 0 where
    the bytes are made on demand.
    """

    name: str
    shape: tuple[int, ...]
    type: BlockType
    offset: int
    num_bytes: int


class TensorFile(ABC):
    """An open file, or several as one. Use it in a `with` block, or close it."""

    path: Path
    tensors: Mapping[str, TensorInfo]  # in the order of the file
    left_out: Mapping[str, str] = MappingProxyType({})  # tensors of types no model here uses, and the type

    @abstractmethod
    def raw(self, name: str) -> NDArray[np.uint8]:
        """The tensor's bytes, uint8 [num_bytes], read-only. ModelFileError: there is no such tensor."""

    def floats(self, name: str) -> NDArray[np.float32]:
        """The tensor as a new float32 array. ModelFileError: its block type is not supported yet."""
        info = self._info(name)
        if not info.type.is_supported:
            problem = f"{info.type.name} is not supported yet"
            raise ModelFileError(self.path, f"tensor {shown(name)}: type", problem)
        return dequantize(info.type, self.raw(name), info.shape)

    def release(self, name: str, num_bytes: int | None = None) -> None:
        """Let the system drop the tensor's pages from this process; they are read again when touched.

        num_bytes: of its first so many bytes, None: of all. Worth calling while a tensor is packed. Does
        nothing where there are no pages to drop.
        """
        self._info(name)

    @abstractmethod
    def close(self) -> None:
        """Give back what is mapped; arrays from `raw` stay valid as long as they live."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def data_bytes(self) -> int:
        """Bytes of all tensors together, without header and padding."""
        return sum(info.num_bytes for info in self.tensors.values())

    def _info(self, name: str) -> TensorInfo:
        if name in self.left_out:
            problem = f"{self.left_out[name]} is not supported yet"
            raise ModelFileError(self.path, f"tensor {shown(name)}: type", problem)
        if name not in self.tensors:
            raise ModelFileError(self.path, f"tensor {shown(name)}", "is missing")
        return self.tensors[name]


class ModelSource(TensorFile):
    """Tensors with the metadata of a model. Names, keys and layouts are those of a GGUF file."""

    metadata: Mapping[str, Value]

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
