"""What a model says about itself, for `models show`; only headers are read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import prod
from pathlib import Path

from tokenglass.formats import ModelSource, open_model

MAX_SHOWN = 200


@dataclass(frozen=True)
class Facts:
    """Of one model. The words come from the file and are not to be trusted; None: it does not say."""

    architecture: str | None
    name: str | None
    licence: str | None
    num_parameters: int
    types: dict[str, int]  # block type -> parameters kept in it, most first
    context_length: int | None
    num_layers: int | None
    embedding_length: int | None
    num_tokens: int | None
    tokenizer: str | None
    has_template: bool | None  # None: its tokenizer is elsewhere, as in a folder


def describe(path: Path) -> Facts:
    """The facts of the GGUF file or folder at `path`. ModelFileError: it is none, or damaged."""
    with open_model(path) as file:
        types: Counter[str] = Counter()
        for info in file.tensors.values():
            types[info.type.name] += prod(info.shape)
        architecture = _text(file, "general.architecture")
        tokens = file.metadata.get("tokenizer.ggml.tokens")
        kinds = [_text(file, "tokenizer.ggml.model"), _text(file, "tokenizer.ggml.pre")]
        return Facts(
            architecture=architecture,
            name=_text(file, "general.name"),
            licence=_text(file, "general.license"),
            num_parameters=sum(types.values()),
            types=dict(types.most_common()),
            context_length=_number(file, f"{architecture}.context_length"),
            num_layers=_number(file, f"{architecture}.block_count"),
            embedding_length=_number(file, f"{architecture}.embedding_length"),
            num_tokens=len(tokens)
            if tokens is not None and not isinstance(tokens, bool | int | float)
            else None,
            tokenizer="/".join(filter(None, kinds)) or None,
            has_template=None if tokens is None else bool(_text(file, "tokenizer.chat_template")),
        )


def _text(file: ModelSource, key: str) -> str | None:
    value = file.metadata.get(key)
    return value[:MAX_SHOWN] if isinstance(value, str) else None


def _number(file: ModelSource, key: str) -> int | None:
    value = file.metadata.get(key)
    return value if type(value) is int else None
