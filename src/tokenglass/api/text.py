"""The tokens of a text: ids, bytes, readable pieces, and where each one stands.

Places are counted in bytes from the left, so they are right for every tokenizer whose tokens join to the text
itself; where they do not (one that changes case, say), no place is given rather than a wrong one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from tokenglass.api import look


@dataclass(frozen=True)
class Token:
    """One token of a text. `bytes` is what it adds (maybe part of a character), `text` the same to read: torn
    bytes as `\\xe5`. It stands in characters [start, end) of the text; a part of a character has that
    character's place. None: the text does not show where (a control token, a tokenizer that changes text).
    """

    id: int
    bytes: bytes
    start: int | None = None
    end: int | None = None

    @property
    def text(self) -> str:
        return readable(self.bytes)


class Tokens(Sequence[Token]):
    """The tokens of a text, in order. `prompt` arguments take it as it is.

    model.tokenize("Hello 世界").ids      # (19556, 216, 232, 249, 44854)
    """

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.source = text
        self._tokens = tuple(tokens)

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(token.id for token in self._tokens)

    @property
    def pieces(self) -> tuple[str, ...]:
        """Each token's text; bytes that are only part of a character as `\\xe5`."""
        return tuple(token.text for token in self._tokens)

    @property
    def bytes(self) -> tuple[bytes, ...]:
        """Each token's bytes: of a text, b"".join(tokens.bytes) is the text in UTF-8."""
        return tuple(token.bytes for token in self._tokens)

    @property
    def offsets(self) -> tuple[tuple[int, int] | None, ...]:
        """Each token's place in the text, in characters: [start, end)."""
        return tuple(
            None if token.start is None or token.end is None else (token.start, token.end)
            for token in self._tokens
        )

    @overload
    def __getitem__(self, index: int) -> Token: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Token, ...]: ...
    def __getitem__(self, index: int | slice) -> Token | tuple[Token, ...]:
        return self._tokens[index]

    def __len__(self) -> int:
        return len(self._tokens)

    def __iter__(self) -> Iterator[Token]:
        return iter(self._tokens)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokens) and self._tokens == other._tokens

    def __hash__(self) -> int:
        return hash(self._tokens)

    def __repr__(self) -> str:
        return f"Tokens({len(self)}: {' | '.join(look.printable(piece) for piece in self.pieces)})"

    def _repr_html_(self) -> str:
        return look.tokens([(token.id, token.text) for token in self._tokens])


def readable(raw: bytes) -> str:
    """Bytes as text; those that are no whole character as `\\xe5`."""
    return raw.decode("utf-8", errors="backslashreplace")


def places(text: str, tokens: Sequence[bytes | None]) -> list[tuple[int, int] | None]:
    """[start, end) of each token's bytes in `text`, in characters; None for a token without text (None).

    A token that holds part of a character has that character's place:
    places("é!", [b"\\xc3", b"\\xa9", b"!"])     # [(0, 1), (0, 1), (1, 2)]
    """
    joined = b"".join(raw for raw in tokens if raw)
    raw_text = text.encode("utf-8", errors="surrogatepass")
    if joined == b" " + raw_text:  # the space that SentencePiece puts before a text
        start = -1
    elif joined == raw_text:
        start = 0
    else:
        return [None] * len(tokens)
    is_first = (np.frombuffer(raw_text, np.uint8) & 0xC0) != 0x80
    char_of_byte = np.cumsum(is_first) - 1
    found: list[tuple[int, int] | None] = []
    for raw in tokens:
        if raw is None:
            found.append(None)
            continue
        first, end = max(start, 0), start + len(raw)
        start = end
        if first >= end:  # nothing but that space
            found.append((0, 0))
        else:
            found.append((int(char_of_byte[first]), int(char_of_byte[end - 1]) + 1))
    return found
