"""Draws a model's download on stderr: one moving bar in a terminal, a few plain lines anywhere else.

The reports come from `hub`; this file only shows them. `rich` is loaded with the first report, as a run that
downloads nothing should not wait for it. `rich` honours NO_COLOR; a dumb terminal gets the lines.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, TextIO

from tokenglass.cli.language import t
from tokenglass.hub import Progress, Stage

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_STEP = 25  # percent between two plain lines


@contextmanager
def download_progress(stream: TextIO | None = None) -> Iterator[Callable[[Progress], None]]:
    """A listener for `hub.pull` and `hub.resolve`; the bar goes when the block ends, however it ends.

    Example: `with download_progress() as progress: path = resolve("smollm2", progress=progress)`
    """
    with ExitStack() as stack:
        show: Callable[[Progress], None] | None = None

        def listener(report: Progress) -> None:
            nonlocal show
            if show is None:
                show = _listener(stream or sys.stderr, stack)
            show(report)

        yield listener


def _listener(stream: TextIO, stack: ExitStack) -> Callable[[Progress], None]:
    from rich.console import Console

    console = Console(file=stream)
    if console.is_terminal and not console.is_dumb_terminal:
        return _bar(console, stack)
    return _plain_lines(stream)


def _bar(console: Console, stack: ExitStack) -> Callable[[Progress], None]:
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    bar = stack.enter_context(Bar(*columns, console=console, transient=True))
    task, stage = bar.add_task("", total=None), None

    def show(report: Progress) -> None:
        nonlocal stage
        if report.stage is not stage:
            stage = report.stage
            bar.reset(task, description=_title(report), total=report.total_bytes or None)
        bar.update(task, completed=report.done_bytes)

    return show


def _plain_lines(stream: TextIO) -> Callable[[Progress], None]:
    last: tuple[Stage, int] | None = None

    def show(report: Progress) -> None:
        nonlocal last
        step = report.done_bytes * 100 // max(report.total_bytes, 1) // PLAIN_STEP
        if last == (report.stage, step):
            return
        last = (report.stage, step)
        amount = (
            t(": {done:.0f} of {total:.0f} MB", done=report.done_bytes / 1e6, total=report.total_bytes / 1e6)
            if report.total_bytes
            else ""
        )
        print(f"{_title(report)}{amount}", file=stream, flush=True)

    return show


def _title(report: Progress) -> str:
    if report.stage is Stage.WAITING:
        return t("another process is fetching {name}, waiting for it", name=report.name)
    return t(f"{report.stage} {{name}}", name=report.name)
