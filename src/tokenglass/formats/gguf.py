"""A GGUF file, mapped into memory: named tensors and typed metadata out of a file nobody should trust.

`GGUFFile.open` checks the whole header (`header.py`); tensor data is read by the system when it is touched
(`mapped.py`). What can be asked of it: `tensor_file.py`. The oracle in the tests is the `gguf` package; we
do without it because it walks vocabularies item by item.
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from tokenglass.errors import ModelFileError
from tokenglass.formats.header import Header, read_header
from tokenglass.formats.mapped import MappedFile
from tokenglass.formats.tensor_file import ModelSource


class GGUFFile(ModelSource):
    """An open file. Use it in a `with` block, or close it; arrays from `raw` stay valid as long as they live.

    with GGUFFile.open("model.gguf") as file:
        file.get("general.architecture", str)            # 'llama'
        file.tensors["token_embd.weight"].shape          # (49152, 576)
        file.floats("output_norm.weight")                # float32 [576]
    """

    def __init__(self, mapped: MappedFile, header: Header) -> None:
        self.path = mapped.path
        self.metadata = MappingProxyType(header.metadata)
        self.tensors = MappingProxyType(header.tensors)
        self._mapped = mapped

    @classmethod
    def open(cls, path: Path | str) -> GGUFFile:
        """The file at `path`, checked. ModelFileError: no such file, not a GGUF, cut or inconsistent."""
        mapped = MappedFile(Path(path))
        try:
            problem = _foreign_format(mapped.data[:64])
            if problem:
                raise ModelFileError(
                    mapped.path, "magic", problem, remedy="A model in the GGUF format is needed"
                )
            return cls(mapped, read_header(mapped.data, mapped.path))
        except BaseException:
            mapped.close()
            raise

    def raw(self, name: str) -> NDArray[np.uint8]:
        """The tensor's bytes, uint8 [num_bytes]: a read-only view of the mapped file, no copy."""
        info = self._info(name)
        return self._mapped.view(info.offset, info.num_bytes)

    def release(self, name: str, num_bytes: int | None = None) -> None:
        """Drops the tensor's whole pages from this process, where the platform has a call for it."""
        info = self._info(name)
        self._mapped.release(info.offset, info.num_bytes if num_bytes is None else num_bytes)

    def close(self) -> None:
        """Gives the mapping back; if arrays from `raw` still live, the last of them does it."""
        self._mapped.close()


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
