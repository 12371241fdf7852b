"""The weights of a Hugging Face folder: one file, or several that an index names, shown as one.

    model.safetensors · model.safetensors.index.json · pytorch_model.bin · pytorch_model.bin.index.json

The first of them that is there counts. An index says which file has which tensor:

    {"weight_map": {"model.norm.weight": "model-00002-of-00002.safetensors"}}
"""

from __future__ import annotations

import re
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from tokenglass.errors import ModelFileError
from tokenglass.formats.cursor import shown
from tokenglass.formats.json_file import read_json
from tokenglass.formats.safetensors import SafetensorsFile
from tokenglass.formats.tensor_file import TensorFile
from tokenglass.formats.torch_file import TorchFile

KINDS: dict[str, type[SafetensorsFile] | type[TorchFile]] = {
    "model.safetensors": SafetensorsFile,
    "pytorch_model.bin": TorchFile,
}
MAX_SHARDS = 1 << 12
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")  # so that no shard lies outside the folder


def open_tensors(folder: Path) -> TensorFile:
    """The weights in `folder`. ModelFileError: there are none, or one of their files is broken."""
    for name, kind in KINDS.items():
        if (folder / name).exists():
            return kind(folder / name)
        if (folder / f"{name}.index.json").exists():
            return Shards(folder / f"{name}.index.json", kind)
    raise ModelFileError(
        folder, "folder", "has no weights", remedy=f"Expected one of: {', '.join(KINDS)}, or their index"
    )


class Shards(TensorFile):
    """Several files as one. Invariant: each tensor is in the file that the index names, and in no other."""

    def __init__(self, path: Path, kind: type[SafetensorsFile] | type[TorchFile]) -> None:
        """The files of the index at `path`. ModelFileError: a name that is none, a file or tensor missing."""
        self.path = path
        homes = _weight_map(path)
        files: dict[str, TensorFile] = {}
        try:
            for shard in dict.fromkeys(homes.values()):
                files[shard] = kind(path.parent / shard)
            for name, shard in homes.items():
                if name not in files[shard].tensors and name not in files[shard].left_out:
                    raise ModelFileError(files[shard].path, f"tensor {shown(name)}", "is missing")
        except BaseException:
            for file in files.values():
                file.close()
            raise
        self._files, self._homes = files, homes
        has = {name: files[shard].tensors for name, shard in homes.items()}
        self.tensors = MappingProxyType({name: has[name][name] for name in homes if name in has[name]})
        self.left_out = {
            name: dtype for file in files.values() for name, dtype in file.left_out.items() if name in homes
        }

    def raw(self, name: str) -> NDArray[np.uint8]:
        """The tensor's bytes, uint8 [num_bytes], out of its own file."""
        return self._file(name).raw(name)

    def release(self, name: str, num_bytes: int | None = None) -> None:
        """Drops the tensor's pages, where its file can."""
        self._file(name).release(name, num_bytes)

    def close(self) -> None:
        """Closes every file."""
        for file in self._files.values():
            file.close()

    def _file(self, name: str) -> TensorFile:
        self._info(name)
        return self._files[self._homes[name]]


def _weight_map(path: Path) -> dict[str, str]:
    homes = read_json(path).get("weight_map")
    if not isinstance(homes, dict) or not homes:
        raise ModelFileError(path, "weight_map", "must be a JSON object")
    for name, shard in homes.items():
        if not isinstance(shard, str) or not _PLAIN_NAME.fullmatch(shard):
            raise ModelFileError(path, f"weight_map: {shown(name)}", "must name a file in the same folder")
    if len(set(homes.values())) > MAX_SHARDS:
        raise ModelFileError(path, "weight_map", f"names more than {MAX_SHARDS} files")
    return homes
