"""What every token id of a model stands for, in text and in bytes, and which ids are special.

Enough to turn ids into text; the merges, which only encoding needs, are not touched (see `bpe.py`).
From a GGUF file: `gguf_vocabulary.py`; from a tokenizer.json: `tokenizer_json.py`.
Source: https://github.com/openai/gpt-2/blob/master/src/encoder.py (the byte-level alphabet).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tokenglass.errors import ParameterError
from tokenglass.formats import StringArray
from tokenglass.tokens.ends import END_NAMES
from tokenglass.tokens.word_marks import CONTINUES, SPACE_MARK

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
_LOOKS_SPECIAL = re.compile(r"<[|｜].*[|｜]>|<[^<>\s]+>|\[[A-Z_/]+\]", re.DOTALL)
