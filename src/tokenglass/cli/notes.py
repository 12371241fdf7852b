"""`tokenglass notes`: what was run here, when, how fast, and whether the answers were the same.

How the lines come about: `journal.py`. Nothing leaves this machine.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from tokenglass.cli.columns import clip, left, right, width
from tokenglass.cli.journal import FIELDS, Note, clear_notes, journal_path, read_notes
from tokenglass.cli.language import t
from tokenglass.cli.output import say, write
from tokenglass.cli.parser import Parser
from tokenglass.sampling.params import check_integer

SHOWN = 20
COLUMNS = 80
LEFT = (0, 1, 2, 8)  # columns of text; numbers stand at the right
EPILOG = (
    "The notes stay on this machine: nothing is sent anywhere. They hold numbers and a hash of the "
    "answer, and no prompts unless asked (run --with-prompts, or TOKENGLASS_NOTES=prompts). "
    "TOKENGLASS_NOTES=0 writes none."
)
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would run


def main(arguments: list[str]) -> int:
    """Prints the notes as a table, as CSV or as JSON lines, or removes them."""
    options = notes_parser().values(arguments)
    if options["clear"]:
        num_notes = len(read_notes()[0])
        clear_notes()
        say(t("{n} notes removed", n=num_notes))
        return 0
    notes, num_bad = read_notes()
    is_table = not (options["csv"] or options["json"])
    num_shown = options["number"] if options["number"] is not None else SHOWN if is_table else len(notes)
    check_integer("number", num_shown, 0, 1 << 40)
    shown = notes[len(notes) - min(num_shown, len(notes)) :]
    if num_bad:
        say(t("{n} lines are no notes and were left out", n=num_bad))
    if options["json"]:
        write("".join(json.dumps(note, ensure_ascii=False) + "\n" for note in shown))
    elif options["csv"]:
        write(as_csv(shown))
    elif not notes:
        say(t("no notes yet: every run and bench adds one line to {path}", path=journal_path()))
    else:
        write(as_table(shown) + "\n")
        say(t("{shown} of {total} notes in {path}", shown=len(shown), total=len(notes), path=journal_path()))
    return 0


def notes_parser() -> Parser:
    """The parser behind `tokenglass notes --help`."""
    parser = Parser(
        "notes",
        "What was run and measured here: one line for every run and bench.",
        epilog=EPILOG,
    )
    add = parser.add_argument
    add("-n", "--number", type=int, metavar="N", help="the newest N (table: 20; CSV and JSON: all)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="comma-separated, for a spreadsheet")
    form.add_argument("--json", action="store_true", help="one JSON object on each line")
    form.add_argument("--clear", action="store_true", help="remove all notes")
    return parser


def as_table(notes: Sequence[Note]) -> str:
    """One line for each note, no wider than 80 columns."""
    rows = [
        [t("time"), t("what"), t("model"), t("in"), t("out"), t("decode/s"), "MB", t("seed"), "sha256"],
        *([_cell(note, name) for name in _COLUMNS] for note in notes),
    ]
    widths = [max(width(row[i]) for row in rows) for i in range(len(rows[0]))]
    excess = sum(widths) + len(widths) - 1 - COLUMNS
    if excess > 0:  # the model's name is what can be shortened
        widths[2] = max(widths[2] - excess, 8)
        rows = [[*row[:2], clip(row[2], widths[2]), *row[3:]] for row in rows]
    return "\n".join(
        " ".join(
            (left if i in LEFT else right)(cell, cells)
            for i, (cell, cells) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def as_csv(notes: Sequence[Note]) -> str:
    """A header and one row for each note. A text that a spreadsheet would take for a formula gets a quote."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(FIELDS)
    writer.writerows([_safe(note.get(name, "")) for name in FIELDS] for note in notes)
    return out.getvalue()


_COLUMNS = (
    "time", "verb", "model", "prompt_tokens", "output_tokens", "decode_tokens_per_s", "memory_bytes", "seed",
    "sha256",
)  # fmt: skip


def _cell(note: Note, name: str) -> str:
    value = note.get(name)
    if value is None:
        return "-"
    if name == "time":
        return _local_time(str(value))
    if name == "model":
        return " ".join(str(value).removesuffix(".gguf").split())
    if name == "decode_tokens_per_s" and not isinstance(value, str):
        return f"{value:.0f}"
    if name == "memory_bytes" and not isinstance(value, str):
        return f"{value / 1e6:.0f}"
    return " ".join(str(value).split())[:12]


def _local_time(text: str) -> str:
    try:
        return datetime.fromisoformat(text).astimezone().strftime("%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return text[:11]


def _safe(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value
