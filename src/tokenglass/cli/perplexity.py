"""`tokenglass perplexity`: of a whole file, window by window. Ctrl-C ends it with the figures so far.

The definition: `engine/scoring.py`, docs/en/score.md.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tokenglass.cli.columns import is_terminal
from tokenglass.cli.errors import translated
from tokenglass.cli.language import t
from tokenglass.cli.model_options import ModelOptions, add_machine, add_model, find_model
from tokenglass.cli.output import say, write
from tokenglass.cli.parser import Parser
from tokenglass.cli.score import finite
from tokenglass.engine.scoring import Perplexity, perplexity
from tokenglass.errors import ParameterError, TokenglassError

MAX_BYTES = 256 << 20
PLAIN_STEPS = 10  # lines of progress where no terminal reads them


def main(arguments: list[str]) -> int:
    """Prints the figures of a file."""
    values = perplexity_parser().values(arguments)
    text = read_file(values["file"])
    path = find_model(values["model"])
    engine = ModelOptions.of(values).load(path)
    for note in map(translated, engine.model.notes):
        say(note)
    found: Perplexity | None = None
    status = 0
    try:
        for found in perplexity(engine, text, window=values["window"], stride=values["stride"]):
            show_progress(found)
    except KeyboardInterrupt:
        status = 130
    if found is None:
        return status
    if values["json"]:
        record = {
            "model": path.name,
            "tokens": found.tokens,
            "bytes": found.num_bytes,
            "total_logprob": finite(found.total_logprob),
            "perplexity": finite(found.perplexity),
            "bits_per_byte": finite(found.bits_per_byte),
            "windows_done": found.windows_done,
            "num_windows": found.num_windows,
        }
        write(json.dumps(record) + "\n")
    else:
        if found.windows_done < found.num_windows:
            write(t("stopped after window {n} of {all}", n=found.windows_done, all=found.num_windows) + "\n")
        write(summary(found) + "\n")
    return status


def perplexity_parser() -> Parser:
    """The parser behind `tokenglass perplexity --help`."""
    parser = Parser("perplexity", t("The perplexity of a text file, and its bits per byte."))
    add = parser.add_argument
    add("file", metavar="FILE", help=t("a text file in UTF-8; - for stdin"))
    add_model(parser)
    add("--window", type=int, metavar="N", help=t("tokens of one window (default: the context window)"))
    add("--stride", type=int, metavar="N",
        help=t("tokens from one window to the next (default: they do not overlap)"))  # fmt: skip
    add("--json", action="store_true", help=t("JSON for programs"))
    add_machine(parser)
    return parser


def read_file(name: str) -> str:
    """The whole text. TokenglassError: it cannot be read; ParameterError: it is no UTF-8, too long, empty."""
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise TokenglassError(f"cannot read {name}: {error.strerror}") from error
    except ValueError:  # a NUL in the name
        raise ParameterError("file", "is no name of a file") from None
    if len(raw) > MAX_BYTES:
        raise ParameterError("file", f"has more than {MAX_BYTES >> 20} MB")
    if not raw:
        raise ParameterError("file", "is empty")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ParameterError("file", f"is not UTF-8 at byte {error.start}") from None


def show_progress(found: Perplexity) -> None:
    """The figure so far on stderr: every window in a terminal, else ten lines."""
    done, num = found.windows_done, found.num_windows
    if is_terminal() or done * PLAIN_STEPS // num > (done - 1) * PLAIN_STEPS // num:
        say(t("window {n} of {all}: perplexity {value}", n=done, all=num, value=f"{found.perplexity:.3f}"))


def summary(found: Perplexity) -> str:
    """`perplexity 12.345, 0.8123 bits per byte; 2,048 tokens predicted`"""
    return t(
        "perplexity {perplexity}, {bits} bits per byte; {n} tokens predicted",
        perplexity=f"{found.perplexity:.4f}",
        bits=f"{found.bits_per_byte:.4f}",
        n=f"{found.tokens:,}",
    )
