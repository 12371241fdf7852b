"""The token table in the metadata of a GGUF file, checked: `vocabulary_of(gguf)`.

Nothing is unpacked before it is asked for: 49,152 tokens open in about 2 ms, most of it one UTF-8 check.
Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (keys and token types).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tokenglass.errors import ModelFileError
from tokenglass.formats import ModelSource, StringArray
from tokenglass.tokens.ends import ends_of
from tokenglass.tokens.pretokenizers import PRE_TOKENIZERS
from tokenglass.tokens.vocabulary import Style, TokenKind, Vocabulary, is_marker
from tokenglass.tokens.word_marks import as_in_vocab_txt

GGUF_STYLES = {
    "gpt2": Style.BYTE_LEVEL,
    "llama": Style.SENTENCEPIECE,
    "t5": Style.SENTENCEPIECE,
    "bert": Style.WORDPIECE,
}  # `tokenizer.ggml.model`
_ID_NAMES = ("bos", "unknown", "padding")
_END_NAMES = ("eos", "eot", "eom")
_BYTE_TOKEN = re.compile(rb"<0x[0-9A-Fa-f]{2}>")


def vocabulary_of(gguf: ModelSource) -> Vocabulary:
    """The vocabulary in the file's metadata. ModelFileError names the key that is missing or wrong."""
    name = gguf.get("tokenizer.ggml.model", str)
    style = GGUF_STYLES.get(name)
    if style is None:
        known = ", ".join(f"{known} ({style.value})" for known, style in GGUF_STYLES.items())
        raise _broken(gguf.path, "model", f"{name!r} is not supported yet; known are {known}")
    tokens = gguf.get("tokenizer.ggml.tokens", StringArray)
    _check_texts(gguf.path, tokens)
    if style is Style.WORDPIECE:
        tokens = StringArray.of([as_in_vocab_txt(raw) for raw in tokens])
    ids = {name: _token_id(gguf, name, len(tokens)) for name in _ID_NAMES}
    ends = {name: gguf.get(f"tokenizer.ggml.{name}_token_id", int, None) for name in _END_NAMES}
    ids |= {name: i if i is not None and 0 <= i < len(tokens) else None for name, i in ends.items()}
    kinds = _kinds(gguf, tokens, ids)
    control = {tokens[i].decode(): i for i in np.flatnonzero(kinds == TokenKind.CONTROL).tolist()}
    user_defined = {tokens[i].decode(): i for i in np.flatnonzero(kinds == TokenKind.USER_DEFINED).tolist()}
    if style is Style.WORDPIECE and ids["unknown"] is not None:
        kinds[ids["unknown"]] = TokenKind.UNKNOWN  # to be seen in a decoded text
    end_ids, notes = ends_of(ends.values(), control, len(tokens))
    return Vocabulary(
        tokens,
        kinds,
        style,
        bos_id=ids["bos"],
        eos_id=ids["eos"],
        unknown_id=ids["unknown"],
        pad_id=ids["padding"],
        end_ids=end_ids,
        notes=notes,
        control=control,
        user_defined=user_defined,
        add_bos=_add_bos(gguf, style, ids["bos"]),
        add_space_prefix=style is Style.SENTENCEPIECE
        and gguf.get("tokenizer.ggml.add_space_prefix", bool, True),
    )


def _check_texts(path: Path, tokens: StringArray) -> None:
    """Refuse an empty vocabulary and tokens that are not UTF-8, in one pass over all of them."""
    if not len(tokens):
        raise _broken(path, "tokens", "is empty")
    starts, ends = tokens.offsets[:-1] + 8, tokens.offsets[1:]
    blob = np.frombuffer(tokens.blob, np.uint8)
    is_text = np.ones(len(blob), bool)
    is_text[: tokens.offsets[0]] = is_text[tokens.offsets[-1] :] = False
    is_text[tokens.offsets[:-1, None] + np.arange(8)] = False  # the lengths between the texts
    firsts = blob[starts[ends > starts]]
    try:
        blob[is_text].tobytes().decode()
        if not ((firsts & 0xC0) == 0x80).any():  # else a character lies across two tokens
            return
    except UnicodeDecodeError:
        pass
    for token_id, raw in enumerate(tokens):
        try:
            raw.decode()
        except UnicodeDecodeError:
            raise _broken(path, "tokens", f"token {token_id} is not valid UTF-8: {raw[:32]!r}") from None


def _token_id(gguf: ModelSource, name: str, num_tokens: int) -> int | None:
    key = f"tokenizer.ggml.{name}_token_id"
    token_id = gguf.get(key, int, None)
    if token_id is not None and not 0 <= token_id < num_tokens:
        raise _broken(
            gguf.path, f"{name}_token_id", f"{token_id} is not in the vocabulary of {num_tokens} tokens"
        )
    return token_id


def _kinds(gguf: ModelSource, tokens: StringArray, ids: Mapping[str, int | None]) -> NDArray[np.int8]:
    """The kind of each token, with two corrections that keep control tokens out of plain text.

    Without `token_type` the tokens the metadata names are control and "<0xNN>" are bytes. With it, a token
    that begins or ends a text is control even where the file calls it otherwise, if it looks like one.
    """
    types = gguf.get("tokenizer.ggml.token_type", np.int32, None)
    named = [token_id for name in ("bos", "eos", "eot", "eom") if (token_id := ids[name]) is not None]
    if types is None:
        kinds = np.full(len(tokens), TokenKind.NORMAL, np.int8)
        kinds[named] = TokenKind.CONTROL
        if GGUF_STYLES[gguf.get("tokenizer.ggml.model", str)] is Style.SENTENCEPIECE:
            kinds[[i for i, raw in enumerate(tokens) if _BYTE_TOKEN.fullmatch(raw)]] = TokenKind.BYTE
        return kinds
    if types.shape != (len(tokens),):
        raise _broken(gguf.path, "token_type", f"has {types.size} entries for {len(tokens)} tokens")
    if types.min() < 0 or types.max() > max(TokenKind):
        wrong = int(np.flatnonzero((types < 0) | (types > max(TokenKind)))[0])
        raise _broken(gguf.path, "token_type", f"token {wrong} has the unknown type {types[wrong]}")
    kinds = np.where(types == 0, TokenKind.NORMAL, types).astype(np.int8)  # 0: undefined
    for token_id in np.flatnonzero(kinds == TokenKind.BYTE).tolist():
        if not _BYTE_TOKEN.fullmatch(tokens[token_id]):
            raise _broken(
                gguf.path, "tokens", f"byte token {token_id} is {tokens[token_id][:32]!r}, not <0xNN>"
            )
    for token_id in {*named, *np.flatnonzero(kinds == TokenKind.USER_DEFINED).tolist()}:
        text = tokens[token_id].decode()
        if is_marker(text, is_named=token_id in named):
            kinds[token_id] = TokenKind.CONTROL
    return kinds


def _add_bos(gguf: ModelSource, style: Style, bos_id: int | None) -> bool:
    add_bos = gguf.get("tokenizer.ggml.add_bos_token", bool, None)
    if add_bos and bos_id is None:
        raise _broken(gguf.path, "add_bos_token", "is true, but there is no bos_token_id")
    if style is Style.WORDPIECE:
        return False  # [CLS] and [SEP] stand around a text to be read, not to be continued
    if add_bos is None and bos_id is not None:
        pre = PRE_TOKENIZERS.get(gguf.get("tokenizer.ggml.pre", str, "default"))
        add_bos = style is Style.SENTENCEPIECE or (pre is not None and pre.add_bos)
    return bool(add_bos)


def _broken(path: Path, key: str, problem: str) -> ModelFileError:
    return ModelFileError(path, f"tokenizer.ggml.{key}", problem)
