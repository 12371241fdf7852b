"""The tokenizer of a Hugging Face folder under the keys of a GGUF file, so that one file holds a whole model.

    tokenizer.json            -> tokens, token_type, merges or scores, pre
    tokenizer_config.json     -> bos, eos, …, the chat template (chat_template.jinja wins)
    generation_config.json    -> further ids that end an answer

A way of cutting words that has no name in GGUF is refused: another one would give other ids.
Source: llama.cpp's converter (convert_hf_to_gguf.py, MIT), for what a reader of GGUF expects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tokenglass.errors import ModelFileError
from tokenglass.formats import StringArray
from tokenglass.formats.json_file import read_json
from tokenglass.formats.tensor_file import Value
from tokenglass.tokens.pretokenizers import DIGITS, GPT2_WORDS, PRE_TOKENIZERS
from tokenglass.tokens.vocabulary import Style, TokenKind

MAX_TOKENS = 1 << 22
_NAMES = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
_MORE_ENDS = ("eot", "eom")


def gguf_keys(folder: Path, *, vocab_size: int) -> dict[str, Value]:
    """`tokenizer.*` for the folder's tokenizer, filled up with unused tokens to `vocab_size` rows.

    ModelFileError: a file is missing or broken, or has something for which GGUF has no words.
    """
    path = folder / "tokenizer.json"
    spec = read_json(path)
    model = _object(path, spec, "model")
    if model.get("type", "BPE") != "BPE":
        raise ModelFileError(path, "model.type", f"{model.get('type')!r} is not supported yet")
    tokens, kinds = _tokens(path, spec, model, vocab_size)
    ids = {text: token_id for token_id, text in enumerate(tokens)}
    keys = (
        _byte_level(path, spec, model)
        if _is_byte_level(spec)
        else _sentencepiece(path, spec, model, ids, kinds)
    )
    keys |= {
        "tokenizer.ggml.tokens": StringArray.of([text.encode() for text in tokens]),
        "tokenizer.ggml.token_type": np.array(kinds, np.int32),
    }
    return keys | _special(folder, spec, ids)


def _tokens(
    path: Path, spec: Mapping[str, Any], model: Mapping[str, Any], vocab_size: int
) -> tuple[list[str], list[int]]:
    """Text and kind of every id; ids that nobody has are unused."""
    vocab = _object(path, model, "vocab")
    added = spec.get("added_tokens", [])
    entries = [*((text, token_id, TokenKind.NORMAL) for text, token_id in vocab.items())]
    for token in added if isinstance(added, list) else []:
        if isinstance(token, dict) and isinstance(token.get("content"), str):
            kind = TokenKind.CONTROL if token.get("special") else TokenKind.USER_DEFINED
            entries.append((token["content"], token.get("id"), kind))
    if not all(type(token_id) is int and 0 <= token_id < MAX_TOKENS for _, token_id, _ in entries):
        raise ModelFileError(path, "model.vocab", "an id is no whole number")
    size = max([vocab_size, *(token_id + 1 for _, token_id, _ in entries)])
    if size > MAX_TOKENS:
        raise ModelFileError(path, "model.vocab", f"{size} items, and at most {MAX_TOKENS} are read")
    tokens, kinds = [f"[PAD{i}]" for i in range(size)], [int(TokenKind.UNUSED)] * size
    for text, token_id, kind in entries:
        tokens[token_id], kinds[token_id] = text, int(kind)
    return tokens, kinds


def _byte_level(path: Path, spec: Mapping[str, Any], model: Mapping[str, Any]) -> dict[str, Value]:
    merges = StringArray.of([" ".join(pair).encode() for pair in _merges(path, model)])
    return {
        "tokenizer.ggml.model": Style.BYTE_LEVEL.value,
        "tokenizer.ggml.pre": _pre(path, spec, model),
        "tokenizer.ggml.merges": merges,
    }


def _sentencepiece(
    path: Path, spec: Mapping[str, Any], model: Mapping[str, Any], ids: Mapping[str, int], kinds: list[int]
) -> dict[str, Value]:
    """The order of the merges becomes scores: an earlier merge is the better one."""
    if not model.get("byte_fallback"):
        raise ModelFileError(path, "pre_tokenizer", "has no name in GGUF")
    scores = np.full(len(kinds), -1e4, np.float32)  # what no merge makes
    merges = _merges(path, model)
    for rank in range(len(merges) - 1, -1, -1):
        if (token_id := ids.get("".join(merges[rank]))) is not None:
            scores[token_id] = -rank
    for byte in range(256):
        if (token_id := ids.get(f"<0x{byte:02X}>")) is not None:
            kinds[token_id] = int(TokenKind.BYTE)
    unknown = model.get("unk_token")
    if isinstance(unknown, str) and unknown in ids:
        kinds[ids[unknown]] = int(TokenKind.UNKNOWN)
    prepends = any(step.get("type") == "Prepend" for step in _steps(spec.get("normalizer"), "normalizers"))
    for step in _steps(spec.get("pre_tokenizer"), "pretokenizers"):
        prepends |= step.get("type") == "Metaspace" and step.get("prepend_scheme", "always") != "never"
    return {
        "tokenizer.ggml.model": Style.SENTENCEPIECE.value,
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.add_space_prefix": prepends,
    }


def _merges(path: Path, model: Mapping[str, Any]) -> list[Sequence[str]]:
    """Pairs of texts; they were one string with a space between until tokenizers 0.20."""
    listed = model.get("merges")
    pairs: list[Any] = [
        pair.split(" ") if isinstance(pair, str) else pair
        for pair in (listed if isinstance(listed, list) else [None])
    ]
    if not all(isinstance(pair, list) and list(map(type, pair)) == [str, str] for pair in pairs):
        raise ModelFileError(path, "model.merges", "must be pairs of texts")
    return pairs


def _pre(path: Path, spec: Mapping[str, Any], model: Mapping[str, Any]) -> str:
    """GGUF's name for how this tokenizer cuts a text into words."""
    rules: list[str] = []
    for step in _steps(spec.get("pre_tokenizer"), "pretokenizers"):
        match step:
            case {"type": "Split", "pattern": {"Regex": str(rule)}, "behavior": "Isolated"}:
                rules.append(rule)
            case {"type": "Digits", "individual_digits": True}:
                rules.append(DIGITS)
            case {"type": "ByteLevel"}:
                if step.get("use_regex", True):
                    rules.append(GPT2_WORDS)
            case _:
                rules.append("another")
    nfc = [step.get("type") for step in _steps(spec.get("normalizer"), "normalizers")] == ["NFC"]
    for name, known in PRE_TOKENIZERS.items():
        if (known.rules, known.ignore_merges, known.nfc) == (
            tuple(rules),
            bool(model.get("ignore_merges")),
            nfc,
        ):
            return name
    raise ModelFileError(path, "pre_tokenizer", "has no name in GGUF")


def _is_byte_level(spec: Mapping[str, Any]) -> bool:
    steps = _steps(spec.get("pre_tokenizer"), "pretokenizers")
    return any(step.get("type") == "ByteLevel" for step in steps)


def _steps(part: Any, inner: str) -> list[Mapping[str, Any]]:
    """A part of the spec as a list of its steps."""
    if not isinstance(part, dict):
        return []
    steps = part.get(inner) if part.get("type") == "Sequence" else [part]
    return [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []


def _special(folder: Path, spec: Mapping[str, Any], ids: Mapping[str, int]) -> dict[str, Value]:
    """Ids with a meaning, whether a text begins with BOS, and the chat template."""
    config = _optional(folder / "tokenizer_config.json")
    named = {name: ids[text] for name in _NAMES if (text := _text(config.get(f"{name}_token")) or "") in ids}
    ends = _optional(folder / "generation_config.json").get("eos_token_id")
    ends = [
        end
        for end in (ends if isinstance(ends, list) else [ends])
        if type(end) is int and 0 <= end < len(ids)
    ]
    if "eos" not in named and ends:
        named["eos"] = ends[0]
    more = [end for end in ends if end != named.get("eos")]
    keys: dict[str, Value] = {f"tokenizer.ggml.{_NAMES[name]}_token_id": i for name, i in named.items()}
    keys |= {f"tokenizer.ggml.{name}_token_id": i for name, i in zip(_MORE_ENDS, more, strict=False)}
    keys["tokenizer.ggml.add_bos_token"] = "bos" in named and _adds_bos(config, spec)
    template = _template(folder, config)
    return keys | ({"tokenizer.chat_template": template} if template else {})


def _adds_bos(config: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    stated = config.get("add_bos_token")
    for step in _steps(spec.get("post_processor"), "processors"):
        match step:
            case {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": first}}, *_]}:
                return bool(first == _text(config.get("bos_token")))
    return stated is True


def _template(folder: Path, config: Mapping[str, Any]) -> str | None:
    try:
        return (folder / "chat_template.jinja").read_text(encoding="utf-8")
    except OSError:
        pass
    except UnicodeDecodeError:
        raise ModelFileError(folder / "chat_template.jinja", "file", "the string is not UTF-8") from None
    template = config.get("chat_template")
    for named in template if isinstance(template, list) else []:
        if isinstance(named, dict) and named.get("name") == "default":
            template = named.get("template")
    return template if isinstance(template, str) else None


def _optional(path: Path) -> dict[str, Any]:
    return read_json(path) if path.exists() else {}


def _object(path: Path, outer: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = outer.get(key)
    if not isinstance(value, dict):
        raise ModelFileError(path, key, "must be a JSON object")
    return value


def _text(token: Any) -> str | None:
    """A token is written as its text, or as an object with its text in it."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else None
