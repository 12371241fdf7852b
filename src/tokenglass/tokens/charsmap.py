"""SentencePiece's normaliser: characters replaced by a table out of the model file, then spaces put in order.

    "Ａ  ﬁne　"   characters   "A  fine "   spaces   "▁A▁fine"

The table (`precompiled_charsmap`, mostly NFKC) is a double array, a trie in one list of numbers:

    size of the array in bytes (uint32) | the array (uint32 each) | replacements, each ends with a zero byte

The longest entry that fits is replaced, else one character is kept.
Sources: https://github.com/google/sentencepiece (normalizer.cc, Apache-2.0),
https://github.com/s-yata/darts-clone (BSD).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from tokenglass.errors import ModelFileError
from tokenglass.tokens.word_marks import SPACE_MARK

Normaliser = Callable[[str], str]


def normaliser(
    path: Path,
    table: bytes,
    *,
    add_prefix: bool = True,
    remove_extra_spaces: bool = True,
    escape_spaces: bool = True,
    keep: Iterable[str] = (),
) -> Normaliser:
    """The function from a text to what pieces are looked for in. `keep`: texts that no rule touches.

    ModelFileError: the table is broken. Linear in the text's length.
    """
    replaced = _replacer(path, table) if table else str
    kept = sorted(filter(None, keep), key=len, reverse=True)
    cuts = re.compile("(" + "|".join(map(re.escape, kept)) + ")") if kept else None

    def normalise(text: str) -> str:
        if cuts is None:
            text = replaced(text)
        else:
            parts = cuts.split(text)
            text = "".join(part if i % 2 else replaced(part) for i, part in enumerate(parts))
        if remove_extra_spaces:
            text = re.sub("  +", " ", text.lstrip(" "))
        if not text:
            return ""
        if add_prefix:
            text = " " + text
        if escape_spaces:
            text = text.replace(" ", SPACE_MARK)
        return text.rstrip(SPACE_MARK if escape_spaces else " ") if remove_extra_spaces else text

    return normalise


def _replacer(path: Path, table: bytes) -> Normaliser:
    size = int.from_bytes(table[:4], "little")
    if len(table) < 4 or size % 4 or not 0 < size <= len(table) - 4:
        raise ModelFileError(path, "precompiled_charsmap", "its array is longer than the table")
    units: list[int] = np.frombuffer(table, "<u4", size // 4, 4).tolist()
    texts = table[4 + size :]

    def longest(raw: bytes, at: int) -> tuple[int, int]:
        """Where the longest entry at `at` ends, and where its replacement begins; (0, 0): there is none."""
        found, node = (0, 0), _children(units[0])
        for i in range(at, len(raw)):
            node ^= raw[i]
            if node >= len(units) or units[node] & 0x8000_00FF != raw[i]:
                break
            unit = units[node]
            node ^= _children(unit)
            if unit >> 8 & 1 and node < len(units):
                found = i + 1, units[node] & 0x7FFF_FFFF
        return found

    def replaced(text: str) -> str:
        raw, pieces, at = text.encode(), [], 0
        start = 0  # of what is kept
        while at < len(raw):
            end, begin = longest(raw, at)
            if not end:
                at += 1 if raw[at] < 0x80 else 2 if raw[at] < 0xE0 else 3 if raw[at] < 0xF0 else 4
                continue
            pieces += [raw[start:at], texts[begin : texts.find(b"\0", begin)]]
            start = at = end
        return b"".join([*pieces, raw[start:]]).decode(errors="replace")

    return replaced


def _children(unit: int) -> int:
    """How far the units behind this one lie."""
    return unit >> 10 << ((unit & 0x200) >> 6)
