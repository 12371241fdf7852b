"""What a model is made of: its tensors by kind, with parameters and bytes, from the header alone.

A kind is what a tensor does, whichever the layer: `attn_q` stands for `blk.0.attn_q.weight`, its bias and
those of all other layers. Names that are not GGUF's are kinds of their own, with `*` for their numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from math import prod

from tokenglass.formats import ModelSource

_IN_LAYER = re.compile(r"(?:^|.*?\.)(?:blk|layers?|h|blocks?)\.\d+\.(.+)", re.DOTALL)
_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")


@dataclass(frozen=True)
class Kind:
    """All tensors of one kind. Parameters and bytes are those of all of them together."""

    name: str  # token_embd, attn_q …
    is_in_layers: bool
    count: int  # tensors without their biases: as many as layers have it
    shape: tuple[int, ...]  # of the first, [rows, cols] for a matrix
    num_parameters: int
    num_bytes: int  # in the file
    types: dict[str, int]  # block type -> tensors, most first


def kinds_of(file: ModelSource) -> tuple[Kind, ...]:
    """The kinds of tensors in `file`, in the order in which it first has them."""
    found: dict[tuple[str, bool], list[str]] = {}
    for name in file.tensors:
        in_layer = _IN_LAYER.fullmatch(name)
        stem, _, last = (in_layer[1] if in_layer else name).rpartition(".")
        kind = stem if last in ("weight", "bias") and stem else in_layer[1] if in_layer else name
        found.setdefault((_NUMBER.sub("*", kind), in_layer is not None), []).append(name)
    return tuple(_kind(file, name, is_in_layers, names) for (name, is_in_layers), names in found.items())


def _kind(file: ModelSource, kind: str, is_in_layers: bool, names: list[str]) -> Kind:
    main = [name for name in names if not name.endswith(".bias")] or names
    infos = [file.tensors[name] for name in names]
    types = Counter(file.tensors[name].type.name for name in main)
    return Kind(
        kind,
        is_in_layers,
        len(main),
        file.tensors[main[0]].shape,
        sum(prod(info.shape) for info in infos),
        sum(info.num_bytes for info in infos),
        dict(types.most_common()),
    )
