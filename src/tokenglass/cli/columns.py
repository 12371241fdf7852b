"""Text in columns: a Chinese character takes two cells of a terminal, a combining mark none.

Also how a token is written where it must be seen exactly: in quotes, with everything a terminal would obey or
hide (controls, bidi marks, lone combining marks) as an escape. `quoted(b" the") == '" the"'`.
"""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Mapping
from types import MappingProxyType

PLAIN_WIDTH = 80  # columns where nobody says how wide the reader's are
ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
EIGHTHS = " ▏▎▍▌▋▊▉█"


def is_terminal() -> bool:
    """Whether stdout is a terminal that understands colours and cursor movements."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def columns() -> int:
    """How many cells a line may have: the terminal's, 80 in a pipe; at least 40."""
    if not sys.stdout.isatty():
        return PLAIN_WIDTH
    return max(40, shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns)


def width(text: str) -> int:
    """Cells that `text` takes in a terminal."""
    if text.isascii():
        return len(text)
    return sum(map(_char_width, text))


def left(text: str, cells: int) -> str:
    """`text` at the left of exactly `cells` cells, cut with "…" where it is too long."""
    text = clip(text, cells)
    return text + " " * (cells - width(text))


def right(text: str, cells: int) -> str:
    """`text` at the right of at least `cells` cells: numbers are never cut."""
    return " " * (cells - width(text)) + text


def clip(text: str, cells: int) -> str:
    """`text`, or as much of it as fits in `cells` cells with "…" at its end."""
    if width(text) <= cells:
        return text
    used, end = 1, 0
    for char in text:
        used += _char_width(char)
        if used > cells:
            break
        end += 1
    return text[:end] + "…"


def quoted(raw: bytes) -> str:
    """A token as it can be read and typed: text in quotes; bytes that are no whole characters as `e5 a4`."""
    try:
        text = escaped(raw.decode())
    except UnicodeDecodeError:
        return raw.hex(" ")
    if "\\" in text or '"' in text:
        text = escaped(raw.decode(), more={"\\": "\\\\", '"': '\\"'})
    return f'"{text}"'


def bare(raw: bytes) -> str:
    """A token among others, without quotes: text; bytes that are no whole characters as `‹e5 a4›`."""
    try:
        return escaped(raw.decode())
    except UnicodeDecodeError:
        return f"‹{raw.hex(' ')}›"


def escaped(text: str, more: Mapping[str, str] = MappingProxyType({})) -> str:
    r"""`text` with what cannot be seen as escapes: `\n`, `\x1b`, `\u202e`, and `more`; spaces stay."""
    if text.isascii() and text.isprintable() and not more:
        return text
    return "".join(more.get(char) or _escape(char, is_first=i == 0) for i, char in enumerate(text))


def bar(share: float, cells: int) -> str:
    """A bar of `share` (0 … 1) of `cells` cells, in eighths; `#` where stdout lacks the letters."""
    share = min(max(share, 0.0), 1.0)
    if not _draws_blocks():
        return "#" * round(share * cells)
    eighths = round(share * cells * 8)
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def percent(share: float) -> str:
    """A probability that keeps its meaning when it is small: `71.23%`, `0.0031%`, `3.1e-09%`, `0`."""
    per_cent = share * 100
    if per_cent == 0:
        return "0"
    if per_cent >= 0.01:
        return f"{per_cent:.2f}%"
    return f"{per_cent:.4f}%" if per_cent >= 0.0001 else f"{per_cent:.0e}%"


def size(num_bytes: int | None) -> str:
    """`98.1 MB`, `2.3 kB`, `512 B`; `-` where nobody knows."""
    if num_bytes is None:
        return "-"
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if num_bytes >= unit:
            return f"{num_bytes / unit:.1f} {name}"
    return f"{num_bytes} B"


def _char_width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _escape(char: str, *, is_first: bool) -> str:
    if char in ESCAPES:
        return ESCAPES[char]
    is_joiner = char in "\u200c\u200d"  # shapes what stands before it: harmless there
    if (char.isprintable() or is_joiner) and not (is_first and (is_joiner or unicodedata.combining(char))):
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _draws_blocks() -> bool:
    try:
        EIGHTHS.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
