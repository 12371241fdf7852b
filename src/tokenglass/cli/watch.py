"""What happens to the pieces of an answer besides being printed: `--trace`, `--trace-file`, `--slow`.

Nothing here can change a token: reasons are asked for with the request, and this only looks at them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from tokenglass.cli.language import t
from tokenglass.cli.options import RunOptions
from tokenglass.cli.output import say
from tokenglass.cli.pace import Pace
from tokenglass.cli.record import header
from tokenglass.engine import Engine, Piece, Request
from tokenglass.engine.listen import event_of
from tokenglass.errors import TokenglassError, UsageError
from tokenglass.trace import TokenEvent, write_event, write_header


class Watch:
    """Takes each piece as it comes. Waiting is not counted as work: `timings` leave it out."""

    def __init__(self, engine: Engine, request: Request) -> None:
        self.engine, self.request = engine, request
        self.listeners: list[Callable[[TokenEvent], None]] = []
        self.pace: Pace | None = None
        self._index = 0
        self._since_s: float | None = None  # when work on the next token began

    def saw(self, piece: Piece) -> bool:
        """Tells everyone of `piece`, then waits for the next one's time. False: the user wants no more."""
        if piece.decision is not None:
            since_s = piece.timings.submitted_s if self._since_s is None else self._since_s
            event = event_of(self.engine, self.request, piece, index=self._index, since_s=since_s)
            for listener in self.listeners:
                listener(event)
            self._index += 1
        self._since_s = piece.at_s
        if self.pace is None or piece.finish_reason:
            return True
        waited_s = self.pace.wait()
        if self.pace.is_ended:
            return False
        self._since_s += waited_s
        piece.timings.submitted_s += waited_s
        piece.timings.first_token_s += waited_s
        return True


@contextmanager
def watching(engine: Engine, request: Request, options: RunOptions, path: Path) -> Iterator[Watch]:
    """A `Watch` with everything the options ask for. TokenglassError: the trace cannot be written."""
    watch = Watch(engine, request)
    with ExitStack() as stack:
        if options.trace_file:  # first: whatever has been shown is also stored
            store = trace_writer(options.trace_file, path, stack, header(engine, options, request, path))
            watch.listeners.append(store)
        if options.trace:
            from tokenglass.cli.trace_view import trace_printer

            watch.listeners.append(trace_printer(request.sampling))
        if options.slow:
            watch.pace = stack.enter_context(Pace(options.slow))
            if watch.pace.has_keys:
                say(t("space pauses, q ends"))
        yield watch


def trace_writer(
    path: Path, model_path: Path, stack: ExitStack, header: dict[str, Any]
) -> Callable[[TokenEvent], None]:
    """A function that adds an event to the file `path`, which begins with `header`; `stack` closes it.

    Each line is on its way to the disk before the next token, so an interrupted run has its trace.
    """
    if path.exists() and path.samefile(model_path):
        raise UsageError("--trace-file would overwrite the model", remedy="Give another file")
    with file_errors(path):
        file = path.open("w", encoding="utf-8", newline="\n", buffering=1)
        stack.callback(close, file)
        write_header(file, header)

    def store(event: TokenEvent) -> None:
        with file_errors(path):
            write_event(file, event)

    return store


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """TokenglassError in place of OSError: which file, and why it cannot be written."""
    try:
        yield
    except OSError as error:
        raise TokenglassError(f"cannot write {path}: {error.strerror}") from error


def close(file: TextIO) -> None:
    """Closes; a line that could not be written was reported when it was, and is not tried again."""
    with suppress(OSError):
        file.close()


def is_one_stream() -> bool:
    """Whether stdout and stderr end in the same place: a trace would then cut the text into pieces."""
    try:
        return os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (OSError, ValueError):  # one of them is no file
        return False
