"""The token table of a GGUF file: what every id stands for, in text and in bytes, and which ids are special.

Enough to turn ids into text; the merges, which only encoding needs, are not touched (see `bpe.py`).
Nothing is unpacked before it is asked for: 49,152 tokens open in about 2 ms, most of it one UTF-8 check.
Sources: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (keys and token types);
https://github.com/openai/gpt-2/blob/master/src/encoder.py (the byte-level alphabet).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tokenglass.errors import ModelFileError, ParameterError
from tokenglass.formats import ModelSource, StringArray
from tokenglass.tokens.ends import END_NAMES, ends_of
from tokenglass.tokens.pretokenizers import PRE_TOKENIZERS
from tokenglass.tokens.word_marks import CONTINUES, SPACE_MARK, as_in_vocab_txt

Encoder = Callable[[str, bool], list[int]]  # ids of a text, and whether it stands at the very beginning


class TokenKind(IntEnum):
    """The kinds of `tokenizer.ggml.token_type`."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3  # written by the template or the engine only; in plain text it is plain text
    USER_DEFINED = 4  # matched in plain text before anything else
    UNUSED = 5
    BYTE = 6  # one raw byte, stored as "<0x0A>"


class Style(Enum):
    """How token texts stand for bytes."""

    BYTE_LEVEL = "byte level"  # one printable letter per byte: "Ġthe" is b" the"
    SENTENCEPIECE = "sentencepiece"  # UTF-8 with "▁" for a space, and a token for each raw byte
    WORDPIECE = "wordpiece"  # words without spaces, and "##ing" for the rest of a word: lossy


GGUF_STYLES = {
    "gpt2": Style.BYTE_LEVEL,
    "llama": Style.SENTENCEPIECE,
    "t5": Style.SENTENCEPIECE,
    "bert": Style.WORDPIECE,
}  # `tokenizer.ggml.model`


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Every token of a model. Invariant: all ids held here lie in [0, num_tokens).

    Duplicate texts are allowed: both ids decode, and the last one is what encoding finds, as in Transformers.
    """

    tokens: StringArray
    kinds: NDArray[np.int8]  # [num_tokens], values of TokenKind
    style: Style
    bos_id: int | None = None
    eos_id: int | None = None
    unknown_id: int | None = None
    pad_id: int | None = None
    end_ids: frozenset[int] = frozenset()  # ids after which an answer is over
    control: Mapping[str, int] = field(default_factory=dict)  # text -> id
    user_defined: Mapping[str, int] = field(default_factory=dict)  # text -> id
    add_bos: bool = False
    add_space_prefix: bool = (
        False  # SentencePiece: a space is put before the text, and taken off when decoding
    )
    word_end: str = ""  # what a token ends with where a space follows: "</w>" in GPT and CLIP
    eats_left: frozenset[int] = frozenset()  # control tokens that swallow the space before them
    eats_right: frozenset[int] = frozenset()  # and behind them
    notes: tuple[str, ...] = ()  # what was passed over in the files
    _bytes: dict[int, bytes] = field(default_factory=dict, repr=False)

    @classmethod
    def from_gguf(cls, gguf: ModelSource) -> Vocabulary:
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
        user_defined = {
            tokens[i].decode(): i for i in np.flatnonzero(kinds == TokenKind.USER_DEFINED).tolist()
        }
        if style is Style.WORDPIECE and ids["unknown"] is not None:
            kinds[ids["unknown"]] = TokenKind.UNKNOWN  # to be seen in a decoded text
        end_ids, notes = ends_of(ends.values(), control, len(tokens))
        return cls(
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

    @property
    def num_tokens(self) -> int:
        return len(self.tokens)

    def token_text(self, token_id: int) -> str:
        """The token as the file stores it: `'Ġthe'`, `'▁the'`, `'<0x0A>'`. IndexError: no such id."""
        return self.tokens[self._checked(token_id)].decode()

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes the token adds to a text: `b' the'`; maybe a torn one. IndexError: no such id."""
        raw = self._bytes.get(token_id)
        if raw is None:
            raw = self._bytes[token_id] = self._raw_bytes(token_id)
        return raw

    def padded(self, num_tokens: int) -> Vocabulary:
        """The same with unused tokens at its end, so that it has as many as a model's head has rows.

        ParameterError: it has more tokens already.
        """
        more = num_tokens - len(self.tokens)
        if more < 0:
            raise ParameterError("vocab_size", f"is {num_tokens}, and there are {len(self.tokens)} tokens")
        if not more:
            return self
        rest = [f"[PAD{i}]".encode() for i in range(len(self.tokens), num_tokens)]
        kinds = np.concatenate([self.kinds, np.full(more, TokenKind.UNUSED, np.int8)])
        return replace(self, tokens=StringArray.of([*self.tokens, *rest]), kinds=kinds, _bytes={})

    def kind(self, token_id: int) -> TokenKind:
        return TokenKind(int(self.kinds[self._checked(token_id)]))

    def continues(self, token_id: int) -> bool:
        """Whether the token is the rest of a WordPiece word (`##ing`). IndexError: no such id."""
        return self.kind(token_id) is TokenKind.NORMAL and self.token_text(token_id).startswith(CONTINUES)

    def is_control(self, token_id: int) -> bool:
        """Whether the token is a control token, which adds nothing to a text. IndexError: no such id."""
        return self._checked(token_id) in self._control_ids

    @cached_property
    def _control_ids(self) -> frozenset[int]:
        return frozenset(np.flatnonzero(self.kinds == TokenKind.CONTROL).tolist())

    def _raw_bytes(self, token_id: int) -> bytes:
        text, kind = self.token_text(token_id), self.kind(token_id)
        if kind is TokenKind.CONTROL:
            return text.encode()
        if self.word_end and text.endswith(self.word_end):
            text = text.removesuffix(self.word_end) + (" " if self.style is not Style.BYTE_LEVEL else "Ġ")
        if self.style is Style.WORDPIECE:
            return text.removeprefix(CONTINUES).encode()
        if self.style is Style.SENTENCEPIECE:
            if kind is TokenKind.BYTE:
                return bytes([int(text[3:5], 16)])
            return text.replace(SPACE_MARK, " ").encode()
        if kind is TokenKind.USER_DEFINED:
            return text.encode()
        try:
            return bytes(map(_BYTE_OF_LETTER.__getitem__, text))
        except (
            KeyError
        ):  # a letter outside the alphabet: the token is plain text, as in Hugging Face's decoder
            return text.encode()

    def _checked(self, token_id: int) -> int:
        if not 0 <= token_id < len(self.tokens):
            raise IndexError(f"token id {token_id} is not in the vocabulary of {len(self.tokens)} tokens")
        return token_id


def is_marker(text: str, *, is_named: bool) -> bool:
    """Whether a token structures chats by its looks, although the file calls it user-defined.

    `is_named`: the file uses it as BOS, EOS or the like.
    """
    is_likely = is_named or text in END_NAMES or text[:2] in ("<|", "<｜")
    return is_likely and _LOOKS_SPECIAL.fullmatch(text) is not None


def byte_letters() -> list[str]:
    """GPT-2's letter for each of the 256 bytes: itself where it is printable Latin-1, else from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


_BYTE_OF_LETTER = {letter: byte for byte, letter in enumerate(byte_letters())}
_ID_NAMES = ("bos", "unknown", "padding")
_END_NAMES = ("eos", "eot", "eom")
_BYTE_TOKEN = re.compile(rb"<0x[0-9A-Fa-f]{2}>")
_LOOKS_SPECIAL = re.compile(r"<[|｜].*[|｜]>|<[^<>\s]+>|\[[A-Z_/]+\]", re.DOTALL)


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
