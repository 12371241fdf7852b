"""What a download looks like on stderr, in a terminal and in a log file."""

from __future__ import annotations

import io

import pytest

from tokenglass.cli.progress import download_progress
from tokenglass.hub import Progress, Stage


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def reports() -> list[Progress]:
    downloading = [Progress("m", Stage.DOWNLOADING, done * 1_000_000, 40_000_000) for done in range(41)]
    return [Progress("m", Stage.WAITING), *downloading, Progress("m", Stage.UNPACKING, 5, 5)]


def drawn_on(stream: io.StringIO) -> str:
    with download_progress(stream) as progress:
        for report in reports():
            progress(report)
    return stream.getvalue()


def test_log_file_gets_a_few_plain_lines() -> None:
    assert drawn_on(io.StringIO()).splitlines() == [
        "another process is fetching m, waiting for it",
        "downloading m: 0 of 40 MB",
        "downloading m: 10 of 40 MB",
        "downloading m: 20 of 40 MB",
        "downloading m: 30 of 40 MB",
        "downloading m: 40 of 40 MB",
        "unpacking m: 0 of 0 MB",
    ]


def test_dumb_terminal_gets_plain_lines_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in drawn_on(Terminal())


def test_terminal_gets_a_bar_that_is_taken_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    drawn = drawn_on(Terminal())
    assert "unpacking m" in drawn
    assert "5/5 bytes" in drawn
    assert drawn.rstrip().endswith("\x1b[2K")  # the last thing done is to clear the line


def test_no_color_draws_the_bar_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in drawn_on(Terminal())


def test_nothing_is_drawn_when_nothing_is_reported() -> None:
    stream = io.StringIO()
    with download_progress(stream):
        pass
    assert stream.getvalue() == ""
