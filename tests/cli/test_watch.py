"""`run --slow` through a pseudo-terminal: the pace, the keys, and that waiting is not counted as work."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import SOURCE, Command, child, finish
from tests.cli.test_output import read_all
from tokenglass.trace import read_trace

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals of Unix")


class Screen:
    """A run in a pseudo-terminal that the test types into."""

    def __init__(self, *arguments: object) -> None:
        import termios

        self.ours, self.theirs = os.openpty()
        self.before = termios.tcgetattr(self.theirs)
        self.process: subprocess.Popen[bytes] = child(
            *arguments,
            stdin=self.theirs,
            stdout=self.theirs,
            stderr=self.theirs,
            env={"TERM": "xterm"},
        )
        self.text = ""

    def read(self, seconds: float) -> str:
        """What appears within `seconds`."""
        end, new = time.monotonic() + seconds, b""
        while (left := end - time.monotonic()) > 0:
            if select.select([self.ours], [], [], left)[0]:
                new += os.read(self.ours, 1 << 16)
        self.text += new.decode(errors="replace")
        return new.decode(errors="replace")

    def wait_for(self, words: str) -> None:
        end = time.monotonic() + 30
        while words not in self.text:
            assert time.monotonic() < end, self.text
            self.read(0.05)

    def type(self, keys: bytes) -> None:
        os.write(self.ours, keys)

    def end(self) -> int:
        """The exit status; the terminal must be as it was."""
        import termios

        status = self.process.wait(timeout=30)
        assert termios.tcgetattr(self.theirs) == self.before
        os.close(self.theirs)
        self.text += read_all(self.ours).decode(errors="replace")
        os.close(self.ours)
        return status


@pytest.fixture
def slow(tiny_model_path: Path, tmp_path: Path) -> Iterator[Screen]:
    screen = Screen(
        "run", "hello", "-m", tiny_model_path, "--raw", "--max-tokens", 400, "--slow", "20/s", "--trace",
        "--trace-file", tmp_path / "t.jsonl", "--trace-top", 1,
    )  # fmt: skip
    yield screen
    if screen.process.poll() is None:
        screen.process.kill()


def test_space_pauses_and_goes_on_and_q_ends(slow: Screen, tmp_path: Path) -> None:
    slow.wait_for("space pauses, q ends")
    slow.wait_for("step 3")
    slow.type(b" ")
    slow.read(0.3)  # what was on its way
    assert slow.read(0.5) == ""
    slow.type(b" ")
    assert "step" in slow.read(0.5)
    slow.type(b"q")
    assert slow.end() == 0
    assert "(interrupted)" in slow.text
    _, events = read_trace(tmp_path / "t.jsonl")
    assert 3 <= len(events) < 400
    assert max(event.step_s for event in events) < 0.3  # the pause is not the model's


def test_q_ends_a_pause_too(slow: Screen) -> None:
    slow.wait_for("step 2")
    slow.type(b" q")
    assert slow.end() == 0


def test_ctrl_c_in_a_wait_leaves_the_terminal_as_it_was(slow: Screen, tmp_path: Path) -> None:
    slow.wait_for("step 2")
    slow.process.send_signal(signal.SIGINT)
    assert slow.end() == 130
    assert "Traceback" not in slow.text
    assert len(read_trace(tmp_path / "t.jsonl")[1]) >= 2  # an interrupted run has its trace


def test_job_in_the_background_is_not_stopped_for_its_keys(tiny_model_path: Path) -> None:
    def own_terminal() -> None:
        import fcntl
        import termios

        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    ours, theirs = os.openpty()
    arguments = ("run", "hello", "-m", tiny_model_path, "--raw", "--max-tokens", 3, "--slow", "50/s")
    process = subprocess.Popen(
        ["sh", "-c", 'set -m; "$@" & wait', "sh", sys.executable, "-m", "tokenglass", *map(str, arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "PYTHONPATH": SOURCE},
        preexec_fn=own_terminal,
    )
    os.close(theirs)
    try:
        process.wait(timeout=30)
    finally:
        process.kill()
    screen = read_all(ours).decode(errors="replace")
    os.close(ours)
    assert "sha256" in screen
    assert "space" not in screen


def test_pace_is_kept_and_not_counted_in_a_pipe(tiny_model_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    arguments = ("run", "hello", "-m", tiny_model_path, "--raw", "--max-tokens", 9, "--json")
    plain = finish(child(*arguments)).json
    started_s = time.monotonic()
    record = finish(child(*arguments, "--slow", "10/s", "--trace-file", path)).json
    assert time.monotonic() - started_s > 0.8  # eight waits of a tenth of a second
    assert record["token_ids"] == plain["token_ids"]
    assert record["timings"]["decode_s"] < 0.4
    assert sum(event.step_s for event in read_trace(path)[1]) < 0.6


def test_slow_without_a_keyboard_says_nothing_of_keys(tokenglass_: Command, tiny_model_path: Path) -> None:
    outcome = tokenglass_("run", "hello", "-m", tiny_model_path, "--max-tokens", 2, "--slow", "100/s")
    assert "space" not in outcome.err
