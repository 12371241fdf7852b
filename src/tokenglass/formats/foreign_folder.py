"""A Hugging Face folder of a model that cannot run here: what it says of itself, to be shown.

Its numbers stand under GGUF's keys and its tensors under GGUF's names where they have one, as they are in the
file otherwise. Nothing is refused that can be shown; a model that shall run goes through `hf_folder.py`.
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenglass.errors import ModelFileError
from tokenglass.formats.hf_folder import CONFIG
from tokenglass.formats.hf_names import ARCHITECTURES
from tokenglass.formats.json_file import read_json
from tokenglass.formats.open_model import is_folder_model, open_model
from tokenglass.formats.shards import open_tensors
from tokenglass.formats.tensor_file import ModelSource, TensorFile, TensorInfo, Value

MOST = 1 << 31
_COUNTS = {  # GGUF's key -> the names that models have for it, by how common they are
    "block_count": ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    "embedding_length": ("hidden_size", "n_embd", "d_model"),
    "feed_forward_length": ("intermediate_size", "n_inner", "ffn_dim", "d_ff"),
    "attention.head_count": ("num_attention_heads", "n_head", "num_heads", "n_heads"),
    "attention.head_count_kv": ("num_key_value_heads",),
    "attention.key_length": ("head_dim",),
    "attention.sliding_window": ("sliding_window",),
    "context_length": ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"),
    "expert_count": ("num_local_experts", "num_experts", "n_routed_experts"),
    "expert_used_count": ("num_experts_per_tok",),
    "vocab_size": ("vocab_size",),
}


def look_into(path: Path) -> tuple[ModelSource, ModelFileError | None]:
    """The model at `path`, open, and why a folder of its kind cannot run (None: nothing is known against it).

    ModelFileError: there is no model, or a file of it is broken.
    """
    try:
        return open_model(path), None
    except ModelFileError as error:
        if not is_folder_model(path):
            raise
        return ForeignFolder(path), error


class ForeignFolder(ModelSource):
    """An open folder. Without weights it has no tensors: a tokenizer's files were fetched alone."""

    def __init__(self, path: Path) -> None:
        """ModelFileError: config.json or a file of weights is broken."""
        self.path = path
        config = read_json(path / CONFIG)
        inner = config.get("text_config")  # models that see and hear keep their language part here
        self.metadata = MappingProxyType(_metadata(config, inner if isinstance(inner, dict) else {}))
        self._files: TensorFile | None = None
        if any(path.glob("*.safetensors*")) or any(path.glob("pytorch_model.bin*")):
            self._files = open_tensors(path)
        stored = self._files.tensors if self._files else {}
        self.left_out = self._files.left_out if self._files else MappingProxyType({})
        self._sources = {_name(source): source for source in stored}
        if len(self._sources) < len(stored):  # two would share a name: they keep their own
            self._sources = {source: source for source in stored}
        self.tensors = MappingProxyType(
            {
                name: TensorInfo(name, info.shape, info.type, 0, info.num_bytes)
                for name, source in self._sources.items()
                for info in (stored[source],)
            }
        )

    def raw(self, name: str) -> NDArray[np.uint8]:
        """The tensor's bytes as they are in the file, uint8 [num_bytes]."""
        self._info(name)
        assert self._files
        return self._files.raw(self._sources[name])

    def close(self) -> None:
        """Closes the files of the folder."""
        if self._files:
            self._files.close()


def _metadata(config: dict[str, Any], inner: dict[str, Any]) -> dict[str, Value]:
    architecture = config.get("model_type")
    architecture = architecture[:80] if isinstance(architecture, str) and architecture else "unknown"
    keys: dict[str, Value] = {"general.architecture": architecture}
    for key, names in _COUNTS.items():
        values = [part.get(name) for part in (config, inner) for name in names]
        value = next((value for value in values if type(value) is int and 0 < value < MOST), None)
        if value is not None:
            keys[f"{architecture}.{key}"] = value
    return keys


def _name(source: str) -> str:
    """GGUF's name of a tensor, as any architecture we know would have it."""
    for architecture in ARCHITECTURES.values():
        if name := architecture.gguf_name(source):
            return name
    return source
