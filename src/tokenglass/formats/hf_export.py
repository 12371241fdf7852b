"""A model's tensors with the names and layouts of a Hugging Face checkpoint: `hf_folder.py` backwards."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tokenglass.errors import ModelFileError
from tokenglass.formats.cursor import shown
from tokenglass.formats.hf_folder import FLOATS
from tokenglass.formats.hf_names import ARCHITECTURES, Architecture, kind_of
from tokenglass.formats.tensor_file import ModelSource, TensorInfo
from tokenglass.formats.write_safetensors import Outgoing

# a checkpoint has them as numbers of its config.json
ROPE_FACTORS = ("rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight")


def checkpoint_tensors(model: ModelSource) -> list[Outgoing]:
    """Every tensor, made when it is written. ModelFileError: one that has no name or no type there."""
    return list(_outgoing(model))


def _outgoing(model: ModelSource) -> Iterator[Outgoing]:
    name = model.get("general.architecture", str)
    architecture = next((known for known in ARCHITECTURES.values() if known.name == name), None)
    if architecture is None:
        raise ModelFileError(model.path, "general.architecture", f"{shown(name)} is not supported yet")
    for info in model.tensors.values():
        if info.name in ROPE_FACTORS:
            continue
        theirs = architecture.hf_name(info.name)
        field = f"tensor {shown(info.name)}"
        if theirs is None:
            raise ModelFileError(model.path, field, f"is not known in the architecture {architecture.name}")
        if info.type not in FLOATS:
            raise ModelFileError(model.path, f"{field}: type", f"safetensors has no {info.type.name}")
        shape = info.shape[::-1] if _is_transposed(architecture, info) else info.shape
        made = partial(_bytes, model, architecture, info)
        yield Outgoing(theirs, info.type.name, shape, info.num_bytes, made)


def _is_transposed(architecture: Architecture, info: TensorInfo) -> bool:
    return kind_of(info.name) in architecture.transposed and len(info.shape) == 2


def _bytes(model: ModelSource, architecture: Architecture, info: TensorInfo) -> NDArray[np.uint8]:
    kind, raw = kind_of(info.name), model.raw(info.name)
    items = raw.view(f"u{info.type.block_bytes}").reshape(info.shape)
    if _is_transposed(architecture, info):
        items = items.T
    elif kind in architecture.interleaved:
        head_dim = _head_dim(model, architecture)
        items = items.reshape(-1, head_dim // 2, 2, *info.shape[1:]).swapaxes(1, 2).reshape(info.shape)
    elif architecture.norm_offset and kind.endswith("norm"):
        return (model.floats(info.name) - np.float32(architecture.norm_offset)).view(np.uint8)
    made: NDArray[np.uint8] = np.ascontiguousarray(items).reshape(-1).view(np.uint8)
    return made


def _head_dim(model: ModelSource, architecture: Architecture) -> int:
    name = architecture.name
    heads = model.get(f"{name}.attention.head_count", int)
    hidden = model.get(f"{name}.embedding_length", int)
    head_dim = model.get(f"{name}.attention.key_length", int, hidden // max(1, heads))
    if (
        head_dim < 2
        or head_dim % 2
        or any(
            info.shape[0] % head_dim
            for info in model.tensors.values()
            if kind_of(info.name) in architecture.interleaved
        )
    ):
        raise ModelFileError(model.path, f"{name}.attention.key_length", f"is {head_dim}")
    return head_dim
