"""What `tokenglass show` knows about a model, as one JSON object: everything from headers, nothing computed.

Words out of files are cut to a length here, and made visible where they are printed (`show.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tokenglass import kernels
from tokenglass.engine.load import tokenizer_of
from tokenglass.errors import ModelFileError, TokenglassError
from tokenglass.fit import plan
from tokenglass.fit.anatomy import kinds_of
from tokenglass.formats import ModelSource
from tokenglass.formats.view import ModelView, WeightForm
from tokenglass.models.config import DecoderConfig, read_config
from tokenglass.models.registry import ENCODERS, architecture_of
from tokenglass.processors import memory_bytes
from tokenglass.tokens import Tokenizer

MAX_WORDS = 200  # characters of a name out of a file
LENGTHS = (2048, 8192, 32768, 131072)  # positions whose memory is shown, as far as the window goes
TEMPLATE_WORDS = {  # what a chat template may have a word for
    "tools": r"\btools\b",
    "tool results": r"tool_responses?|['\"](?:tool|ipython|function)['\"]",
    "documents": r"\bdocuments\b",
    "thinking": r"enable_thinking|reasoning_content|\bthinking\b",
}
_LICENCE = re.compile(r"^license:[ \t]*([\w.+-]+)", re.MULTILINE)
_NUMBERS = {
    "layers": "block_count",
    "hidden": "embedding_length",
    "ffn": "feed_forward_length",
    "heads": "attention.head_count",
    "kv_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "experts": "expert_count",
    "experts_used": "expert_used_count",
    "context_length": "context_length",
}


def describe(
    file: ModelSource,
    obstacle: ModelFileError | None,
    *,
    licence: str | None = None,
    kv: str = "f16",
    weights: WeightForm | None = None,
) -> dict[str, Any]:
    """The record of an open model. `obstacle`: why it cannot run, where that is known already."""
    config: DecoderConfig | None = None
    if obstacle is None:
        try:
            config = check_runs(file)
        except ModelFileError as error:
            obstacle = error
    kinds = kinds_of(file)
    return {
        "name": words(file, "general.name"),
        "path": str(file.path),
        "architecture": words(file, "general.architecture") or "unknown",
        "runs": obstacle is None,
        "obstacle": str(obstacle) if obstacle else None,
        "generates": words(file, "general.architecture") not in ENCODERS,
        "licence": licence or words(file, "general.license") or _licence_beside(file.path),
        "parameters": sum(kind.num_parameters for kind in kinds),
        "num_bytes": sum(kind.num_bytes for kind in kinds),
        **_shape(file, config),
        "tensors": [asdict(kind) for kind in kinds],
        **_tokenizer(file),
        "memory": None if obstacle or not kinds else _memory(file, kv, weights),
    }


def words(file: ModelSource, key: str) -> str | None:
    """A text of the metadata, not longer than a line; None where there is none."""
    value = file.metadata.get(key)
    return value[:MAX_WORDS] if isinstance(value, str) and value else None


def check_runs(file: ModelSource) -> DecoderConfig:
    """The shape of a model that runs. ModelFileError: its architecture or a type of weights does not."""
    architecture_of(file)
    config = read_config(file)
    for info in file.tensors.values():
        if len(info.shape) == 2 and not kernels.has_panels(info.type.name):
            raise ModelFileError(file.path, f"tensor {info.name}", f"{info.type.name} is not supported yet")
    return config


def _shape(file: ModelSource, config: DecoderConfig | None) -> dict[str, Any]:
    """The numbers that give a model its shape; None: the file does not say."""
    arch = words(file, "general.architecture")
    found: dict[str, Any] = {}
    for name, key in _NUMBERS.items():
        value = file.metadata.get(f"{arch}.{key}")
        found[name] = value if type(value) is int else None
    if config is None:
        found["kv_heads"] = found["kv_heads"] or found["heads"]
        if found["heads"] and found["hidden"]:
            found["head_dim"] = found["head_dim"] or found["hidden"] // found["heads"]
        return {**found, "windows": {}, "rope": None}
    windows = Counter(config.windows)
    is_turned = "position_embd.weight" not in file.tensors
    return {
        **found,
        "kv_heads": config.num_kv_heads,
        "head_dim": config.head_dim,
        "windows": {str(window): windows[window] for window in sorted(windows)},  # "0": all positions
        "rope": asdict(config.rope) | {"layers": sum(config.turned)} if is_turned else None,
    }


def _tokenizer(file: ModelSource) -> dict[str, Any]:
    try:
        tokenizer = tokenizer_of(file)
    except TokenglassError as error:
        return {"tokenizer": {"problem": str(error)}, "chat_template": None}
    vocabulary = tokenizer.vocabulary
    special = {"bos": vocabulary.bos_id, "unknown": vocabulary.unknown_id, "padding": vocabulary.pad_id}
    named = {name: _token(tokenizer, token_id) for name, token_id in special.items() if token_id is not None}
    template = tokenizer.chat.source
    return {
        "tokenizer": {
            "kind": vocabulary.style.value,
            "model": words(file, "tokenizer.ggml.model"),
            "pre": words(file, "tokenizer.ggml.pre"),
            "tokens": vocabulary.num_tokens,
            "special": named,
            "ends": [_token(tokenizer, token_id) for token_id in sorted(vocabulary.end_ids)],
            "adds_bos": vocabulary.add_bos,
        },
        "chat_template": template
        and {
            "characters": len(template),
            "knows": [name for name, words in TEMPLATE_WORDS.items() if re.search(words, template)],
        },
    }


def _token(tokenizer: Tokenizer, token_id: int) -> dict[str, Any]:
    return {"id": token_id, "text": tokenizer.vocabulary.token_text(token_id)[:MAX_WORDS]}


def _memory(file: ModelSource, kv: str, weights: WeightForm | None) -> dict[str, Any]:
    """Bytes by what they are for, and of the whole at several lengths of a text."""
    planned = plan(ModelView(file, weights=weights), kv=kv)
    machine, window = memory_bytes(), planned.context_length
    lengths = sorted({*(length for length in LENGTHS if length < window), window})
    return {
        "weights": planned.weights,
        "activations": planned.activations,
        "process": planned.process,
        "kv": kv,
        "cache_bytes_per_token": planned.token_bytes,
        "machine": machine,
        "at": [
            {
                "positions": length,
                "cache": planned.cache_bytes(length),
                "cache_in_windows": sum(layers.seen_bytes(length) for layers in planned.layers),
                "total": planned.total(length),
                "fits": None if machine is None else planned.total(length) <= machine,
            }
            for length in lengths
        ],
    }


def _licence_beside(path: Path) -> str | None:
    """What the model card of a folder states between its two lines of `---`."""
    try:
        with (path / "README.md").open("rb") as file:
            card = file.read(8192).decode(errors="replace")
    except OSError:
        return None
    found = _LICENCE.search(card.split("\n---")[0]) if card.startswith("---") else None
    return found[1] if found else None
