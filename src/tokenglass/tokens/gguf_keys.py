"""The tokenizer of a Hugging Face folder under the keys of a GGUF file, so that one file holds a whole model.

Tokens, special ids and the template are those that `files.py` reads; merges, scores and the name of the cuts
come from tokenizer.json. A way of cutting words that has no name in GGUF is refused: another one would give
other ids. Source: llama.cpp's converter (convert_hf_to_gguf.py, MIT), for what a reader of GGUF expects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tokenglass.errors import ModelFileError
from tokenglass.formats import StringArray
from tokenglass.formats.tensor_file import Value
from tokenglass.tokens.files import read_spec, read_tokenizer
from tokenglass.tokens.gguf import LOWER_CASE
from tokenglass.tokens.pretokenizers import DIGITS, GPT2_WORDS, PRE_TOKENIZERS
from tokenglass.tokens.vocabulary import Style, TokenKind, Vocabulary
from tokenglass.tokens.word_marks import as_in_gguf, as_in_vocab_txt
from tokenglass.tokens.wordpiece import wordpiece_spec

_MORE_ENDS = ("eot", "eom")


def gguf_keys(folder: Path, *, vocab_size: int) -> dict[str, Value]:
    """`tokenizer.*` for the folder's tokenizer, filled up with unused tokens to `vocab_size` rows.

    ModelFileError: a file is missing or broken, or has something for which GGUF has no words.
    """
    parts = read_tokenizer(folder)
    vocabulary = parts.vocabulary.padded(vocab_size)
    path, spec = read_spec(folder)
    model = spec["model"]
    keys: dict[str, Value] = {
        "tokenizer.ggml.tokens": vocabulary.tokens,
        "tokenizer.ggml.token_type": vocabulary.kinds.astype(np.int32),
        "tokenizer.ggml.add_bos_token": vocabulary.add_bos,
        **_ids(vocabulary),
    }
    if model.get("type", "BPE") == "WordPiece":
        keys |= _wordpiece(path, spec, vocabulary)
    elif model.get("type", "BPE") != "BPE":
        problem = f"a tokenizer of the kind {model.get('type')!r} cannot be written to GGUF yet"
        raise ModelFileError(path, "model.type", problem)
    elif vocabulary.style is Style.BYTE_LEVEL:
        keys |= _byte_level(path, spec, model)
    else:
        keys |= _sentencepiece(path, spec, model, vocabulary)
    ends = {name: "" if name == "default" else f".{name}" for name in parts.chat_template}
    return keys | {f"tokenizer.chat_template{ends[n]}": text for n, text in parts.chat_template.items()}


def _ids(vocabulary: Vocabulary) -> dict[str, Value]:
    """Ids with a meaning; GGUF has room for three that end an answer."""
    first = vocabulary.eos_id if vocabulary.eos_id is not None else min(vocabulary.end_ids, default=None)
    more = sorted(vocabulary.end_ids - {first})
    ids = {
        "bos": vocabulary.bos_id,
        "eos": first,
        "unknown": vocabulary.unknown_id,
        "padding": vocabulary.pad_id,
        **dict(zip(_MORE_ENDS, more, strict=False)),
    }
    return {f"tokenizer.ggml.{name}_token_id": i for name, i in ids.items() if i is not None}


def _byte_level(path: Path, spec: Mapping[str, Any], model: Mapping[str, Any]) -> dict[str, Value]:
    merges = StringArray.of([" ".join(pair).encode() for pair in _merges(path, model)])
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": _pre(path, spec, model),
        "tokenizer.ggml.merges": merges,
    }


def _sentencepiece(
    path: Path, spec: Mapping[str, Any], model: Mapping[str, Any], vocabulary: Vocabulary
) -> dict[str, Value]:
    """The order of the merges becomes scores: an earlier merge is the better one."""
    if vocabulary.style is not Style.SENTENCEPIECE or not model.get("byte_fallback"):
        raise ModelFileError(path, "pre_tokenizer", "has no name in GGUF")
    ids = {raw.decode(): token_id for token_id, raw in enumerate(vocabulary.tokens)}
    scores = np.full(vocabulary.num_tokens, -1e4, np.float32)  # what no merge makes
    merges = _merges(path, model)
    for rank in range(len(merges) - 1, -1, -1):
        if (token_id := ids.get("".join(merges[rank]))) is not None:
            scores[token_id] = -rank
    prepends = any(step.get("type") == "Prepend" for step in _steps(spec.get("normalizer"), "normalizers"))
    for step in _steps(spec.get("pre_tokenizer"), "pretokenizers"):
        prepends |= step.get("type") == "Metaspace" and step.get("prepend_scheme", "always") != "never"
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.add_space_prefix": prepends,
    }


def _wordpiece(path: Path, spec: Mapping[str, Any], vocabulary: Vocabulary) -> dict[str, Value]:
    """Words get the mark of their beginning, which their rests lose: "run", "##ning" are "▁run", "ning"."""
    tokens = [as_in_gguf(raw) for raw in vocabulary.tokens]
    normalizer = spec.get("normalizer")
    rules = normalizer if isinstance(normalizer, dict) else {}
    lower_case = rules.get("lowercase") is True
    known = wordpiece_spec((), lower_case=lower_case, strip_accents=rules.get("strip_accents"), special=())
    parts = [{**part, "model": {**part["model"], "vocab": {}}} for part in (dict(spec), known)]
    ours, theirs = ([part.get(name) for name in ("normalizer", "pre_tokenizer", "model")] for part in parts)
    if ours != theirs or rules.get("strip_accents") not in (None, lower_case):
        raise ModelFileError(path, "pre_tokenizer", "has no name in GGUF")
    if [as_in_vocab_txt(raw) for raw in tokens] != list(vocabulary.tokens):
        raise ModelFileError(path, "model.vocab", "has no name in GGUF")
    kinds = np.where(vocabulary.kinds == TokenKind.UNKNOWN, TokenKind.CONTROL, vocabulary.kinds)
    return {
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.tokens": StringArray.of(tokens),
        "tokenizer.ggml.token_type": kinds.astype(np.int32),
        LOWER_CASE: lower_case,
    }


def _merges(path: Path, model: Mapping[str, Any]) -> list[Sequence[str]]:
    """Pairs of texts; they were one string with a space between until tokenizers 0.20."""
    listed = model.get("merges")
    if callable(listed):  # of a rank file (`ranks.py`): slow to list, and only here they are needed
        listed = listed()
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


def _steps(part: Any, inner: str) -> list[Mapping[str, Any]]:
    """A part of the spec as a list of its steps."""
    if not isinstance(part, dict):
        return []
    steps = part.get(inner) if part.get("type") == "Sequence" else [part]
    return [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
