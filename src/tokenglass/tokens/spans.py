"""Where each token lies in its text, and how many tokens each script costs.

    text    天        ok           characters 0, 1:3
    bytes   e5 a4 a9  6f 6b
    tokens  e5 a4 | a9 | 6f 6b     "天 1-2/3", "天 3/3", 1:3

Numpy throughout: a text of a megabyte has a quarter of a million tokens.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LOOK_AHEAD = 64  # bytes a tokenizer may drop or compose before a token is said to stand nowhere
_LETTERS = {
    "CJK": "Han", "LATIN": "Latin", "HIRAGANA": "kana", "KATAKANA": "kana", "HANGUL": "Hangul",
    "CYRILLIC": "Cyrillic", "GREEK": "Greek", "ARABIC": "Arabic", "HEBREW": "Hebrew",
    "DEVANAGARI": "Devanagari", "THAI": "Thai",
}  # fmt: skip  # first word of a letter's Unicode name


@dataclass(frozen=True)
class Part:
    """Bytes `first` to `last` (from 1) of the `of` bytes of `char`: what a token holds of it."""

    char: str
    first: int
    last: int
    of: int

    def __str__(self) -> str:
        span = f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"
        return f"{self.char} {span}/{self.of}"


class Spans:
    """Tokens in their text. Invariant: starts[i] <= ends[i]; both -1 where the token stands nowhere in it
    (BOS, or what the tokenizer itself put there).

    starts, ends: int64 [tokens], in bytes of `raw`.
    """

    def __init__(self, text: str, pieces: Sequence[bytes]) -> None:
        self.text = text
        self.raw = text.encode()
        points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        lengths = 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000)
        self.points = points  # [characters]
        self.char_start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)  # [characters + 1]
        self.char_at = np.repeat(np.arange(len(points)), lengths)  # [bytes]: the character a byte is of
        self.starts, self.ends, self._is_verbatim = _locate(self.raw, pieces)

    @property
    def is_exact(self) -> bool:
        """Whether the tokens give back every byte of the text."""
        at = self.starts >= 0
        return self._is_verbatim and int((self.ends - self.starts)[at].sum()) == len(self.raw)

    def chars(self, i: int) -> tuple[int, int] | None:
        """The characters that token i touches, as a slice of the text; None where it stands nowhere."""
        start, end = int(self.starts[i]), int(self.ends[i])
        if start < 0 or start == end:
            return None
        return int(self.char_at[start]), int(self.char_at[end - 1]) + 1

    def parts(self, i: int) -> list[Part]:
        """The characters of which token i holds only some bytes: none, one, or one at each end."""
        chars = self.chars(i)
        if chars is None:
            return []
        start, end = int(self.starts[i]), int(self.ends[i])
        found = []
        for char in dict.fromkeys((chars[0], chars[1] - 1)):
            begin, stop = int(self.char_start[char]), int(self.char_start[char + 1])
            if start > begin or end < stop:
                first, last = max(start, begin) - begin + 1, min(end, stop) - begin
                found.append(Part(self.text[char], first, last, stop - begin))
        return found

    def by_script(self) -> dict[str, tuple[int, float]]:
        """Script -> (characters, tokens), most characters first. A token that lies in several scripts counts
        for each by its bytes.
        """
        unique, inverse = np.unique(self.points, return_inverse=True)
        names = [script_of(chr(point)) for point in unique.tolist()]
        scripts = sorted(set(names))
        code = np.array([scripts.index(name) for name in names], np.int64)[inverse]  # [characters]
        counts = np.bincount(code, minlength=len(scripts))
        at = self.starts >= 0
        lengths = (self.ends - self.starts)[at]
        lengths, starts = lengths[lengths > 0], self.starts[at][lengths > 0]
        first = np.repeat(np.cumsum(lengths) - lengths, lengths)
        covered = np.arange(int(lengths.sum())) - first + np.repeat(starts, lengths)  # bytes, token by token
        shares = np.bincount(
            code[self.char_at[covered]], np.repeat(1.0 / lengths, lengths), minlength=len(scripts)
        )
        order = np.argsort(-counts, kind="stable").tolist()
        return {scripts[i]: (int(counts[i]), float(shares[i])) for i in order}


def script_of(char: str) -> str:
    """`Han`, `Latin`, `digits`, `emoji`, `spaces`, `punctuation`, …; `other` for the rest."""
    code, category = ord(char), unicodedata.category(char)
    if (
        0x1F000 <= code <= 0x1FAFF
        or code in (0xFE0F, 0x200D, 0x20E3)
        or (category == "So" and code >= 0x2600)
    ):
        return "emoji"
    if category in ("Nd", "No"):
        return "digits"
    if category[0] == "Z" or char in "\t\n\r":
        return "spaces"
    if category[0] in "PS":
        return "punctuation"
    if char == "〇":
        return "Han"
    return _LETTERS.get(unicodedata.name(char, "").split(" ")[0], "other")


def estimate(text: str) -> tuple[int, int]:
    """The rule of thumb, (fewest, most) tokens: 1-2 Chinese, 3-4 other characters a token."""
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    dense = int(np.count_nonzero((points >= 0x2E80) & (points < 0xE000) | (points >= 0x20000)))
    others = len(points) - dense
    return -(-(2 * dense + others) // 4), -(-(3 * dense + others) // 3)


def _locate(raw: bytes, pieces: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int64], bool]:
    """Start and end of each piece in `raw`, in order, -1 for one that is not there; and whether every piece
    stands there letter by letter: the words of a tokenizer that lowers the case are found too.
    """
    starts = np.full(len(pieces), -1, np.int64)
    ends = np.full(len(pieces), -1, np.int64)
    lowered = raw.lower()  # ASCII only, so of the same length
    is_verbatim = True
    at = 0
    for i, piece in enumerate(pieces):
        if not raw.startswith(piece, at):
            if at == 0 and piece[:1] == b" " and raw.startswith(piece[1:]):
                piece = piece[1:]  # the space that SentencePiece puts before a text
            else:
                end = at + len(piece) + LOOK_AHEAD
                found = [place for text in (raw, lowered) if (place := text.find(piece, at, end)) >= 0]
                if not found or not piece:
                    continue
                at = min(found)  # the tokenizer dropped what lies between
                is_verbatim = is_verbatim and raw.startswith(piece, at)
        starts[i], ends[i] = at, at + len(piece)
        at += len(piece)
    return starts, ends, is_verbatim
