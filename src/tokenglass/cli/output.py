"""What the command line writes: text on stdout, everything else on stderr, and nothing a terminal would obey.

Model text and the words of model files are not trusted: an escape sequence in them could retitle a terminal
or hide a line, a mark that turns the writing direction could show a word as another one. In a terminal
these characters show as symbols; pipes get the exact text.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Literal, TextIO

from tokenglass.errors import TokenglassError

# C0 and DEL have pictures in Unicode (U+2400 …), C1 have none. Newline and tab do no harm.
CONTROLS = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421"}
CONTROLS |= {code: f"\\x{code:02x}" for code in range(0x80, 0xA0)}
# Marks that turn the direction of writing: https://www.unicode.org/reports/tr9/#Directional_Formatting_Characters
BIDI_MARKS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
CONTROLS |= {code: f"\\u{code:04x}" for code in BIDI_MARKS}
SYMBOLS = {code: symbol for code, symbol in CONTROLS.items() if chr(code) not in "\n\t"}


def prepare_streams() -> None:
    """Makes stdout and stderr fit for any text.

    UTF-8 everywhere but in a terminal that declares another encoding (the C locale declares nothing); what
    cannot be shown becomes "?". A stderr that was closed by the caller swallows what it gets; a closed stdout
    refuses it, as a lost answer must not look like success.
    """
    sys.stdout = _prepared(sys.stdout, "replace", if_closed="r")  # nothing can be written to it
    sys.stderr = _prepared(sys.stderr, "backslashreplace", if_closed="w")


def _prepared(stream: TextIO | None, errors: str, *, if_closed: Literal["r", "w"]) -> TextIO:
    if stream is None:
        return open(os.devnull, if_closed, encoding="utf-8")
    declares_other = stream.isatty() and stream.encoding.lower() not in (
        "ascii",
        "us-ascii",
        "ansi_x3.4-1968",
    )
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(encoding=stream.encoding if declares_other else "utf-8", errors=errors)
    return stream


def visible(text: str) -> str:
    """`text` with its control characters as symbols: `visible("\\x1b[2J") == "␛[2J"`."""
    return text.translate(SYMBOLS)


def write(text: str) -> None:
    """Writes to stdout at once. TokenglassError: it is closed, or the disk is full, say; BrokenPipeError:
    nobody reads.
    """
    try:
        sys.stdout.write(visible(text) if sys.stdout.isatty() else text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        abandon_streams()
        raise TokenglassError(f"cannot write the output: {error.strerror or 'stdout is closed'}") from error


def say(message: str) -> None:
    """Writes one line to stderr, whatever is in `message`. A stderr that is full or gone just loses it."""
    try:
        print(visible(" ".join(message.split("\n"))), file=sys.stderr, flush=True)
    except OSError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def abandon_streams() -> None:
    """Sends what is still buffered nowhere, so that Python does not complain about it on its way out."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):
                os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
