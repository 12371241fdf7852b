"""A PyTorch checkpoint (`pytorch_model.bin`): a zip archive with one pickle and the bytes of each storage.

    archive/data.pkl        which tensor is which part of which storage (`pickle_machine.py`: nothing is run)
    archive/data/0, 1, …    the storages, stored as they are (`zip_members.py`)
    archive/byteorder       "little"; older files have none

Before PyTorch 1.6 it was no archive but five pickles in a row (magic, version, system, tensors, keys of the
storages), and then each storage behind its length as int64.
Source: `torch.save` of https://github.com/pytorch/pytorch (torch/serialization.py, BSD-3).
"""

from __future__ import annotations

import math
from io import BytesIO
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from tokenglass.errors import ModelFileError
from tokenglass.formats.blocks import BlockType
from tokenglass.formats.cursor import TRUNCATED, shown
from tokenglass.formats.mapped import MappedFile
from tokenglass.formats.pickle_machine import PickleMachine, StoredTensor
from tokenglass.formats.safetensors import DTYPE_BYTES, MAX_DIMS, MAX_TENSORS
from tokenglass.formats.tensor_file import TensorFile, TensorInfo
from tokenglass.formats.zip_members import zip_members

MAX_PICKLE_BYTES = 1 << 26
_BEFORE_ZIP = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # the magic number of the older form, pickled


class TorchFile(TensorFile):
    """An open checkpoint: a dict of tensors by name.

    with TorchFile("pytorch_model.bin") as file:
        file.tensors["transformer.wte.weight"].shape     # (21128, 768)
        file.floats("transformer.ln_f.bias")             # float32 [768]
    """

    def __init__(self, path: Path | str) -> None:
        """The file at `path`, checked. ModelFileError: not such a file, cut, inconsistent, or a program."""
        self.path = Path(path)
        self._mapped = MappedFile(self.path)
        try:
            self._read()
        except BaseException:
            self._mapped.close()
            raise

    def raw(self, name: str) -> NDArray[np.uint8]:
        """The tensor's bytes, uint8 [num_bytes]: a view of the mapped file where they lie in order there."""
        info, strides = self._info(name), self._strides[name]
        if strides == _in_order(info.shape) or not info.num_bytes:
            return self._mapped.view(info.offset, info.num_bytes, aligned_to=info.type.block_bytes)
        item = np.dtype(f"V{info.type.block_bytes}")
        reach = 1 + sum((length - 1) * stride for length, stride in zip(info.shape, strides, strict=True))
        items = self._mapped.view(info.offset, reach * item.itemsize).view(item)
        view = np.lib.stride_tricks.as_strided(
            items, info.shape, [stride * item.itemsize for stride in strides], writeable=False
        )
        return np.ascontiguousarray(view).reshape(-1).view(np.uint8)

    def release(self, name: str, num_bytes: int | None = None) -> None:
        """Drops the tensor's whole pages from this process, where the platform has a call for it."""
        info = self._info(name)
        self._mapped.release(info.offset, info.num_bytes if num_bytes is None else num_bytes)

    def close(self) -> None:
        """Gives the mapping back; if arrays from `raw` still live, the last of them does it."""
        self._mapped.close()

    def _read(self) -> None:
        start = self._mapped.data[: len(_BEFORE_ZIP)]
        if start == _BEFORE_ZIP:
            self._read_old()
        elif start.startswith(b"PK"):
            self._read_archive()
        else:
            raise ModelFileError(self.path, "magic", "this is not a PyTorch checkpoint")

    def _read_archive(self) -> None:
        members = zip_members(self._mapped)
        pickles = [name for name in members if name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise ModelFileError(self.path, "data.pkl", "is missing")
        folder = pickles[0].removesuffix("data.pkl")
        order = members.get(f"{folder}byteorder")
        self._check_order(order is None or self._mapped.view(*order).tobytes() == b"little")
        offset, num_bytes = members[pickles[0]]
        if num_bytes > MAX_PICKLE_BYTES:
            raise ModelFileError(self.path, "data.pkl", f"has more than {MAX_PICKLE_BYTES >> 20} MB")
        stream = BytesIO(self._mapped.data[offset : offset + num_bytes])
        self._storages = {name.removeprefix(f"{folder}data/"): place for name, place in members.items()}
        self._place(PickleMachine(stream, self.path).run())

    def _read_old(self) -> None:
        data = self._mapped.data
        stream = BytesIO(data[:MAX_PICKLE_BYTES])
        _magic, _version, system = (PickleMachine(stream, self.path).run() for _ in range(3))
        self._check_order(type(system) is dict and system.get("little_endian") is True)
        machine = PickleMachine(stream, self.path)
        state, keys = machine.run(), PickleMachine(stream, self.path).run()
        at = stream.tell()
        self._storages = {}
        for key in keys if type(keys) is list else []:
            storage = machine.storages.get(key) if type(key) is str else None
            if storage is None or key in self._storages:
                raise ModelFileError(self.path, "storages", "are not those of the tensors")
            num_bytes = storage.num_items * DTYPE_BYTES[storage.dtype]
            num_items = int.from_bytes(data[at : at + 8], "little")
            if num_items != storage.num_items or at + 8 + num_bytes > len(data):
                problem = f"ends at byte {at + 8 + num_bytes}, and the file has {len(data)}"
                raise ModelFileError(self.path, f"storage {shown(key)}", problem, remedy=TRUNCATED)
            self._storages[key] = at + 8, num_bytes
            at += 8 + num_bytes
        self._place(state)

    def _check_order(self, is_little_endian: bool) -> None:
        if not is_little_endian:
            raise ModelFileError(self.path, "byteorder", "only little-endian files are read")

    def _place(self, state: object) -> None:
        """Each tensor of the dict, held against the bounds of its storage."""
        if type(state) is not dict or not all(type(name) is str for name in state):
            raise ModelFileError(self.path, "data.pkl", "is not a dict of tensors by name")
        if len(state) > MAX_TENSORS:
            raise ModelFileError(
                self.path, "data.pkl", f"{len(state)} items, and at most {MAX_TENSORS} are read"
            )
        tensors: dict[str, TensorInfo] = {}
        self._strides: dict[str, tuple[int, ...]] = {}
        self.left_out = others = {}
        for name, value in state.items():
            if not isinstance(value, StoredTensor):
                raise ModelFileError(self.path, f"tensor {shown(name)}", "is not a tensor")
            dtype = value.storage.dtype
            offset = self._checked_offset(name, value)
            if dtype not in BlockType.__members__:
                others[name] = dtype
                continue
            num_bytes = math.prod(value.shape) * DTYPE_BYTES[dtype]
            tensors[name] = TensorInfo(name, value.shape, BlockType[dtype], offset, num_bytes)
            self._strides[name] = value.strides
        self.tensors = MappingProxyType(tensors)

    def _checked_offset(self, name: str, tensor: StoredTensor) -> int:
        """Where in the file the tensor's first item lies."""
        field, storage = f"tensor {shown(name)}", tensor.storage
        item_bytes = DTYPE_BYTES[storage.dtype]
        if storage.key not in self._storages:
            raise ModelFileError(self.path, f"{field}: storage", f"{shown(storage.key)} is not in the file")
        start, num_bytes = self._storages[storage.key]
        if num_bytes != storage.num_items * item_bytes:
            problem = f"has {num_bytes} bytes for {storage.num_items} items of {item_bytes}"
            raise ModelFileError(self.path, f"{field}: storage", problem, remedy=TRUNCATED)
        shape, strides = tensor.shape, tensor.strides
        if len(shape) > MAX_DIMS or len(shape) != len(strides) or min((*shape, *strides, tensor.offset)) < 0:
            raise ModelFileError(self.path, f"{field}: shape", "does not go with its strides and offset")
        reach = 1 + sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True))
        num_items = math.prod(shape)
        if num_items and (tensor.offset + reach > storage.num_items or num_items > reach):
            raise ModelFileError(self.path, f"{field}: shape", "reaches past the end of its storage")
        return start + tensor.offset * item_bytes if num_items else start


def _in_order(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in items, of an array that lies row after row."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
