"""A `tokenizer.json` as a vocabulary and an encoder. Files of other kinds are turned into one first.

    spec           {"model": {"type": "BPE", "vocab": …}, "added_tokens": […], "normalizer": …, …}
    vocabulary     every id's text, kind and bytes, for decoding
    encoder        the `tokenizers` library on the same spec, its control tokens renamed

Text must never give a control token. So each gets a secret name that nobody can type, new each time; ids do
not change. Everything else is the library's own doing, so ids equal those of the original file.
Format: https://huggingface.co/docs/tokenizers (and its sources, Apache-2.0).
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tokenglass.errors import ModelFileError
from tokenglass.formats import StringArray
from tokenglass.tokens.ends import ends_of
from tokenglass.tokens.settings import Settings
from tokenglass.tokens.vocabulary import (
    Encoder,
    Style,
    TokenKind,
    Vocabulary,
    is_marker,
)
from tokenglass.tokens.word_marks import SPACE_MARK

MOST_HOLES = 1 << 20  # ids without a token: more are a mistake in the file
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
_SEQUENCES = ("normalizers", "pretokenizers", "decoders", "processors")
_BYTE = re.compile("<0x[0-9A-F]{2}>")

Spec = dict[str, Any]


def check_spec(path: Path, spec: Spec) -> None:
    """ModelFileError: a part that we look at has the wrong form. The library checks the rest."""
    model = spec.get("model")
    if not isinstance(model, dict):
        raise ModelFileError(path, "model", "is missing")
    vocab = model.get("vocab")
    if isinstance(vocab, dict):
        if not all(type(i) is int and i >= 0 for i in vocab.values()):
            raise ModelFileError(path, "model.vocab", "an id is no whole number")
    elif isinstance(vocab, list):
        if not all(isinstance(entry, list) and entry and isinstance(entry[0], str) for entry in vocab):
            raise ModelFileError(path, "model.vocab", "an entry is no [text, score]")
    else:
        raise ModelFileError(path, "model.vocab", "is missing")
    added = spec.setdefault("added_tokens", [])
    is_list = isinstance(added, list) and all(
        isinstance(token, dict) and isinstance(token.get("content"), str) and type(token.get("id")) is int
        for token in added
    )
    if not is_list or any(token["id"] < 0 for token in added):
        raise ModelFileError(path, "added_tokens", "an entry has no content or no id")
    for token in added:
        for flag in _FLAGS:
            token[flag] = bool(token.get(flag, False))


def vocabulary_of(path: Path, spec: Spec, settings: Settings) -> Vocabulary:
    """What every id stands for. ModelFileError: the ids leave holes, or a named token does not exist."""
    texts = _texts(path, spec)
    style = _style(spec)
    added = {token["content"]: token for token in spec["added_tokens"]}
    ids = {text: token_id for token_id, text in texts.items()}
    first = _first_special(spec) if style is not Style.WORDPIECE else None
    named = {name: ids.get(text) for name, text in settings.named.items()}
    if "bos" not in named and first is not None:
        named["bos"] = ids.get(first)
    num_tokens = max(texts) + 1
    kinds = np.full(num_tokens, TokenKind.NORMAL, np.int8)
    kinds[[i for i in range(num_tokens) if i not in texts]] = TokenKind.UNUSED
    if any(step.get("type") == "ByteFallback" for step in _steps(spec.get("decoder"))):
        kinds[[i for i, text in texts.items() if _BYTE.fullmatch(text)]] = TokenKind.BYTE
    for text, token in added.items():
        is_control = token["special"] or is_marker(text, is_named=ids[text] in named.values())
        kinds[ids[text]] = TokenKind.CONTROL if is_control else TokenKind.USER_DEFINED
    control = {texts[i]: i for i in np.flatnonzero(kinds == TokenKind.CONTROL).tolist()}
    unknown = _unknown(spec)
    if unknown in ids:
        named["unk"] = ids[unknown]
        kinds[ids[unknown]] = (
            TokenKind.UNKNOWN
        )  # still cut out where control tokens are: it has an entry there
    end_ids, notes = ends_of({*settings.end_ids, named.get("eos")}, control, num_tokens)
    bos = named.get("bos")
    add_bos = (
        settings.add_bos if settings.add_bos is not None else first is not None and ids.get(first) == bos
    )
    return Vocabulary(
        StringArray.of([texts.get(i, f"[PAD{i}]").encode() for i in range(num_tokens)]),
        kinds,
        style,
        bos_id=bos,
        eos_id=named.get("eos"),
        unknown_id=named.get("unk"),
        pad_id=named.get("pad"),
        end_ids=end_ids,
        notes=notes,
        control=control,
        user_defined={text: ids[text] for text in added if kinds[ids[text]] == TokenKind.USER_DEFINED},
        add_bos=add_bos and bos is not None,
        add_space_prefix=_puts_space(spec),
        word_end=spec["model"].get("end_of_word_suffix") or "",
        eats_left=frozenset(ids[text] for text in control if added[text]["lstrip"]),
        eats_right=frozenset(ids[text] for text in control if added[text]["rstrip"]),
    )


def encoder_of(path: Path, spec: Spec, control: Mapping[str, int]) -> Encoder:
    """The library's encoder: 0.1 s to make for 30,000 tokens, 2 s for 250,000.

    ModelFileError: the library refuses the file.
    """
    import tokenizers

    disarmed = _disarmed(spec, control)
    first_only = [
        step
        for step in (*_steps(disarmed.get("pre_tokenizer")), *_steps(disarmed.get("normalizer")))
        if step.get("prepend_scheme") == "first"
    ]

    def build() -> tokenizers.Tokenizer:
        try:
            return tokenizers.Tokenizer.from_str(json.dumps(disarmed, ensure_ascii=False))
        except Exception as error:  # noqa: BLE001 (the library raises nothing narrower)
            raise ModelFileError(path, "tokenizer", f"the package tokenizers refuses it: {error}") from None

    at_start = further = build()
    if first_only:  # a space goes before the text, but not before what follows a control token
        for step in first_only:
            step["prepend_scheme"] = "never"
        further = build()
    return lambda text, is_first: (
        (at_start if is_first else further).encode(text, add_special_tokens=False).ids
    )


def _disarmed(spec: Spec, control: Mapping[str, int]) -> Spec:
    """The spec with control tokens under secret names, and without what is added around a text."""
    secret = {text: f"\ue000{secrets.token_hex(8)}:{i}" for text, i in control.items()}
    model = dict(spec["model"])
    if isinstance(model["vocab"], dict):
        model["vocab"] = {secret.get(text, text): i for text, i in model["vocab"].items()}
    else:
        model["vocab"] = [[secret.get(entry[0], entry[0]), *entry[1:]] for entry in model["vocab"]]
    if model.get("merges") and secret.keys() & spec["model"]["vocab"].keys():
        prefix = model.get("continuing_subword_prefix") or ""
        model["merges"] = [pair for pair in model["merges"] if not _makes(pair, secret, prefix)]
    if model.get("unk_token") in secret:
        model["unk_token"] = secret[model["unk_token"]]
    added = [
        {**token, "content": secret.get(token["content"], token["content"])} for token in spec["added_tokens"]
    ]
    nothing = dict.fromkeys(("truncation", "padding", "post_processor", "decoder"))
    # a copy of what `encoder_of` changes
    steps = json.loads(json.dumps({name: spec.get(name) for name in ("normalizer", "pre_tokenizer")}))
    return {"version": "1.0", **nothing, **steps, "added_tokens": added, "model": model}


def _makes(pair: str | list[str], secret: Mapping[str, str], prefix: str) -> bool:
    """Whether a merge has a control token as a part or as its result."""
    left, right = pair.split(" ", 1) if isinstance(pair, str) else pair
    return left in secret or right in secret or left + right.removeprefix(prefix) in secret


def _texts(path: Path, spec: Spec) -> dict[int, str]:
    vocab = spec["model"]["vocab"]
    if isinstance(vocab, dict):
        texts = {token_id: text for text, token_id in vocab.items()}
    else:
        texts = {token_id: entry[0] for token_id, entry in enumerate(vocab)}
    texts |= {token["id"]: token["content"] for token in spec["added_tokens"]}
    if not texts:
        raise ModelFileError(path, "model.vocab", "is empty")
    if max(texts) >= len(texts) + MOST_HOLES:
        raise ModelFileError(path, "model.vocab", f"has the id {max(texts)} and only {len(texts)} tokens")
    return texts


def _steps(part: Any) -> Iterator[dict[str, Any]]:
    """A normalizer, pre-tokenizer or decoder as its single steps."""
    if not isinstance(part, dict):
        return
    inner = [part[name] for name in _SEQUENCES if name in part]
    if not inner:
        yield part
    for steps in inner:
        for step in steps if isinstance(steps, list) else ():
            yield from _steps(step)


def _style(spec: Spec) -> Style:
    model = spec["model"]
    decoders = list(_steps(spec.get("decoder")))
    types = {step.get("type") for step in (*decoders, *_steps(spec.get("pre_tokenizer")))}
    if "ByteLevel" in types:
        return Style.BYTE_LEVEL
    has_mark = any(step.get("pattern") == {"String": SPACE_MARK} for step in decoders)
    if has_mark or types & {"Metaspace", "ByteFallback"} or isinstance(model["vocab"], list):
        return Style.SENTENCEPIECE
    return Style.SENTENCEPIECE if model.get("end_of_word_suffix") else Style.WORDPIECE


def _puts_space(spec: Spec) -> bool:
    """Whether a space is put before every text, and taken off again when decoding."""
    for step in _steps(spec.get("decoder")):
        if step.get("type") == "Strip" and step.get("content") == " " and step.get("start"):
            return True
        if step.get("type") == "Metaspace":
            scheme = step.get("prepend_scheme", "always" if step.get("add_prefix_space", True) else "never")
            return bool(scheme != "never")
    return False


def _first_special(spec: Spec) -> str | None:
    """The token that the file itself puts before every text."""
    for step in _steps(spec.get("post_processor")):
        parts = step.get("single") if step.get("type") == "TemplateProcessing" else None
        if isinstance(parts, list) and parts and isinstance(parts[0], dict) and "SpecialToken" in parts[0]:
            return str(parts[0]["SpecialToken"].get("id"))
    return None


def _unknown(spec: Spec) -> str | None:
    model = spec["model"]
    if isinstance(model["vocab"], list):
        unknown = model.get("unk_id")
        return model["vocab"][unknown][0] if type(unknown) is int and unknown < len(model["vocab"]) else None
    return model.get("unk_token") or None
