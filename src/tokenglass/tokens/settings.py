"""What a Hugging Face folder says about its tokenizer beside the tokens: which are special, and the template.

tokenizer_config.json     bos_token, eos_token, …, add_bos_token, do_lower_case, chat_template
special_tokens_map.json   the same names, in old models
generation_config.json    eos_token_id: ids that end an answer; without this file config.json's
chat_template.jinja       wins over the template in tokenizer_config.json
additional_chat_templates/NAME.jinja  further ones, with names
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenglass.errors import ModelFileError
from tokenglass.formats.json_file import read_json

_LLAMA = (
    "LlamaTokenizer",
    "GemmaTokenizer",
    "CodeLlamaTokenizer",
)  # begin a text with BOS unless told not to


@dataclass(frozen=True)
class Settings:
    """Facts of a folder; the defaults are those of a tokenizer file that stands alone."""

    named: Mapping[str, str] = field(default_factory=dict)  # bos, eos, unk, pad, cls, sep, mask -> token text
    added: tuple[Mapping[str, Any], ...] = ()  # further tokens: id, content, special, lstrip, …
    add_bos: bool | None = None
    end_ids: frozenset[int] = frozenset()
    chat_template: Mapping[str, str] = field(default_factory=dict)  # name, mostly "default" -> its text
    config: Mapping[str, Any] = field(default_factory=dict)  # tokenizer_config.json as it is


def read_settings(folder: Path) -> Settings:
    """The settings of a folder; a file that is not there says nothing. ModelFileError: one is no JSON."""
    config = _object(folder / "tokenizer_config.json")
    special = {**_object(folder / "special_tokens_map.json"), **config}
    names = ("bos", "eos", "unk", "pad", "cls", "sep", "mask")
    named = {name: text for name in names if (text := _token(special.get(f"{name}_token"))) is not None}
    is_given = (folder / "generation_config.json").is_file()
    ends = _object(folder / ("generation_config.json" if is_given else "config.json")).get("eos_token_id")
    listed = ends if isinstance(ends, list) else [ends]
    add_bos = config.get("add_bos_token")
    if not isinstance(add_bos, bool):
        kind = str(config.get("tokenizer_class", "")).removesuffix("Fast")
        add_bos = True if kind in _LLAMA and "bos" in named else None
    decoder = config.get("added_tokens_decoder")
    added = [
        {**token, "id": int(token_id)}
        for token_id, token in (decoder.items() if isinstance(decoder, dict) else ())
        if token_id.isdecimal() and isinstance(token, dict)
    ]
    return Settings(
        named,
        tuple(added),
        add_bos,
        frozenset(i for i in listed if type(i) is int and i >= 0),
        _templates(folder, config.get("chat_template")),
        config,
    )


def _object(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _token(value: Any) -> str | None:
    """A token's text, written as a string or as an object with `content`."""
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else None


def _templates(folder: Path, value: Any) -> dict[str, str]:
    """The chat templates by name; as in Transformers those in files of their own replace the settings'."""
    paths = {path.stem: path for path in sorted((folder / "additional_chat_templates").glob("*.jinja"))}
    paths |= {"default": folder / "chat_template.jinja"} if (folder / "chat_template.jinja").is_file() else {}
    if paths:
        return {name: _text(path) for name, path in paths.items()}
    entries = value if isinstance(value, list) else [{"name": "default", "template": value}]
    named = {e.get("name"): e.get("template") for e in entries if isinstance(e, dict)}
    return {n: text for n, text in named.items() if isinstance(n, str) and isinstance(text, str)}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ModelFileError(path, "template", f"is not UTF-8 at byte {error.start}") from None
