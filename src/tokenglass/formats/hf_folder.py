"""A Hugging Face folder, shown as the GGUF file that llama.cpp's converter would write of it.

    config.json               -> metadata (`hf_config.py`)
    *.safetensors or *.bin    -> tensors (`shards.py`), under GGUF's names (`hf_names.py`)

So a model reads both in the same words, and `tokenglass convert` only has to write down what is seen here.
Layouts are GGUF's too: rows of q and k are put in its order when they are read, vectors are F32. The
tokenizer's files are read by `tokens/`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenglass.errors import ModelFileError
from tokenglass.formats.blocks import BlockType
from tokenglass.formats.cursor import shown
from tokenglass.formats.hf_config import architecture_of, metadata_of, settings_of
from tokenglass.formats.hf_names import kind_of
from tokenglass.formats.hf_rope import rope_tensors
from tokenglass.formats.json_file import read_json
from tokenglass.formats.shards import open_tensors
from tokenglass.formats.tensor_file import ModelSource, TensorFile, TensorInfo

CONFIG = "config.json"
FLOATS = (BlockType.F32, BlockType.F16, BlockType.BF16)
Items = NDArray[Any]
Rearrange = Callable[[Items], Items]


@dataclass(frozen=True)
class Part:
    """Where a tensor comes from, and how its items are rearranged."""

    source: str
    rearrange: Rearrange | None = None
    offset: float = 0.0  # added to every value


class HFFolder(ModelSource):
    """An open folder.

    with HFFolder("Qwen2.5-0.5B-Instruct") as model:
        model.get("general.architecture", str)           # 'qwen2'
        model.tensors["blk.0.attn_q.weight"].shape       # (896, 896)
    """

    def __init__(self, path: Path | str) -> None:
        """The model in the folder `path`. ModelFileError: a file is missing, broken or of an unknown kind."""
        self.path = Path(path)
        config_path = self.path / CONFIG
        config = read_json(config_path)
        self._architecture = architecture_of(config, config_path)
        self._settings = settings_of(config, config_path)
        self.metadata = MappingProxyType(metadata_of(config, config_path, _printable(self.path)))
        self._files: TensorFile = open_tensors(self.path)
        try:
            self._parts: dict[str, Part] = {}
            tensors = {info.name: info for name in self._files.tensors if (info := self._named(name))}
            arch = self._architecture.name
            half = self.get(f"{arch}.rope.dimension_count", int, default=2) // 2
            self._made = rope_tensors(self._settings, half)
        except BaseException:
            self._files.close()
            raise
        for name, values in self._made.items():
            tensors[name] = TensorInfo(name, values.shape, BlockType.F32, 0, values.nbytes)
        self.tensors = MappingProxyType(tensors)

    def raw(self, name: str) -> NDArray[np.uint8]:
        """The tensor's bytes, uint8 [num_bytes]: a view of the file, or a copy in GGUF's layout."""
        info = self._info(name)
        if name in self._made:
            return self._made[name].view(np.uint8)
        part = self._parts[name]
        if len(info.shape) == 1:
            values = self._files.floats(part.source) + np.float32(part.offset)
            return (part.rearrange(values) if part.rearrange else values).view(np.uint8)
        raw = self._files.raw(part.source)
        if part.rearrange is None:
            return raw
        items = raw.view(f"u{info.type.block_bytes}").reshape(self._files.tensors[part.source].shape)
        return np.ascontiguousarray(part.rearrange(items)).reshape(-1).view(np.uint8)

    def release(self, name: str, num_bytes: int | None = None) -> None:
        """Drops the tensor's pages, where its file can."""
        self._info(name)
        if name in self._parts:
            self._files.release(self._parts[name].source, num_bytes)

    def close(self) -> None:
        """Closes the files of the folder."""
        self._files.close()

    def _named(self, source: str) -> TensorInfo | None:
        """The tensor under GGUF's name and shape; None for one that no model needs."""
        info, architecture = self._files.tensors[source], self._architecture
        if architecture.unused.fullmatch(source):
            return None
        name = architecture.gguf_name(source)
        field = f"tensor {shown(source)}"
        if name is None or name in self._parts:
            problem = "appears twice" if name else f"is not known in the architecture {architecture.name}"
            raise ModelFileError(self._files.path, field, problem)
        if info.type not in FLOATS or len(info.shape) not in (1, 2) or not math.prod(info.shape):
            problem = f"{info.type.name} of shape {list(info.shape)} is not supported yet"
            raise ModelFileError(self._files.path, field, problem)
        kind, shape = kind_of(name), info.shape
        rearrange: Rearrange | None = None
        if kind in architecture.interleaved:
            rearrange = self._interleave(kind, shape[0], field)
        elif kind in architecture.transposed and len(shape) == 2:
            rearrange, shape = np.transpose, shape[::-1]
        offset = architecture.norm_offset if kind.endswith("norm") else 0.0
        self._parts[name] = Part(source, rearrange, offset)
        block_type = BlockType.F32 if len(shape) == 1 else info.type
        return TensorInfo(name, shape, block_type, 0, block_type.num_bytes(shape))

    def _interleave(self, kind: str, rows: int, field: str) -> Rearrange:
        """Row i and row i + head_dim / 2 of each head become rows 2i and 2i + 1."""
        arch = self._architecture.name
        heads = self.get(f"{arch}.attention.head_count{'_kv' if kind == 'attn_k' else ''}", int)
        head_dim = self.get(f"{arch}.attention.key_length", int)
        if rows != heads * head_dim or head_dim % 2:
            problem = f"has {rows} rows, expected {heads} heads of {head_dim}"
            raise ModelFileError(self._files.path, field, problem)
        return lambda items: items.reshape(heads, 2, head_dim // 2, -1).swapaxes(1, 2).reshape(items.shape)


def _printable(path: Path) -> str:
    """The folder's name, even where its bytes are not UTF-8."""
    return path.resolve().name.encode(errors="replace").decode()
