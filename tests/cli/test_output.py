"""Streams and signals: terminals, pipes that close, full disks, Ctrl-C. All with a real child process."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import child, finish
from tests.support.tiny_llama import TinyLlama, write_tiny_llama
from tokenglass.cli.output import visible

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals and signals of Unix")
NOISE = (
    "--raw",
    "--temperature",
    100,
    "--seed",
    1,
    "--max-tokens",
    200,
    "--ignore-eos",
)  # tokens of every kind, controls too
CONTROLS = {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))} - set("\n\t")


@pytest.fixture(scope="module")
def endless_model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model whose window is too long to be filled while a test waits."""
    path = tmp_path_factory.mktemp("models") / "endless.gguf"
    return write_tiny_llama(path, shape=TinyLlama(context_length=1 << 17))


def endless(path: Path) -> tuple[object, ...]:
    return ("run", "hello", "-m", path, "--raw", "--max-tokens", (1 << 17) - 16)


def test_control_characters_have_symbols_but_newline_and_tab_stay() -> None:
    assert visible("a\x1b[2J\x07\r\n\t\x7f\x9b你é") == "a␛[2J␇␍\n\t␡\\x9b你é"


def test_marks_that_turn_the_direction_are_shown() -> None:
    assert visible("a\u202egpj.exe\u2066b\u200f") == "a\\u202egpj.exe\\u2066b\\u200f"
    assert visible("שלום 你好 👩\u200d🚀") == "שלום 你好 👩\u200d🚀"  # letters and joiners stay


def test_pipe_gets_the_exact_text_and_a_terminal_nothing_it_would_obey(tiny_model_path: Path) -> None:
    arguments = ("run", "hello", "-m", tiny_model_path, *NOISE)
    piped = finish(child(*arguments)).out
    assert set(piped) & CONTROLS

    ours, theirs = os.openpty()
    process = child(*arguments, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    screen = read_all(ours).decode().replace("\r\n", "\n")
    os.close(ours)
    assert process.wait(timeout=60) == 0
    assert not set(screen) & CONTROLS
    assert visible(piped) in screen  # the same answer, made visible
    assert "sha256" in screen.splitlines()[-1]


def test_reader_who_leaves_ends_the_run_quietly(endless_model_path: Path) -> None:
    process = child(*endless(endless_model_path))
    assert process.stdout is not None
    assert process.stdout.read(1)
    process.stdout.close()
    process.stdout = None
    outcome = finish(process)
    assert outcome.status == 141
    assert outcome.err == "raw text, no chat template\n"


def test_reader_of_both_streams_who_leaves_ends_the_run_quietly(tiny_model_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    process = child("run", "hello", "-m", tiny_model_path, stdout=write, stderr=write)
    os.close(write)
    assert process.wait(timeout=60) == 141


def test_ctrl_c_ends_with_the_text_so_far_and_the_numbers(endless_model_path: Path) -> None:
    process = child(*endless(endless_model_path))
    assert process.stdout is not None
    first = process.stdout.read(1)  # it is writing: now interrupt it
    process.send_signal(signal.SIGINT)
    outcome = finish(process)
    assert outcome.status == 130
    assert first
    assert outcome.out.endswith("\n")
    assert "Traceback" not in outcome.err
    assert " output tokens (interrupted) in " in outcome.err.splitlines()[-1]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_full_disk_is_one_line(tiny_model_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        outcome = finish(child("run", "hello", "-m", tiny_model_path, stdout=full))
    assert outcome.status == 1
    assert outcome.err.splitlines()[1:] == ["tokenglass: cannot write the output: No space left on device"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_notes_that_cannot_be_said_cost_no_answer(tiny_model_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        outcome = finish(child("run", "hello", "-m", tiny_model_path, stderr=full))
    assert outcome.status == 0
    assert outcome.out == finish(child("run", "hello", "-m", tiny_model_path)).out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_polite_end_is_one(endless_model_path: Path, number: int) -> None:
    def heed() -> (
        None
    ):  # whoever started the tests may have had it ignored (nohup), and so would its children
        signal.signal(number, signal.SIG_DFL)

    process = child(*endless(endless_model_path))
    assert process.stdout is not None
    assert process.stdout.read(1)
    process.send_signal(number)
    outcome = finish(process)
    assert outcome.status == 128 + number
    assert "Traceback" not in outcome.err


def closing(*numbers: int) -> Callable[[], None]:
    def close() -> None:
        for number in numbers:
            os.close(number)

    return close


def test_closed_stderr_does_not_matter(tiny_model_path: Path) -> None:
    process = child("run", "hello", "-m", tiny_model_path, preexec_fn=closing(2), stderr=None)
    outcome = finish(process)
    assert outcome.status == 0
    assert outcome.out


@pytest.mark.parametrize("arguments", [("run", "hello"), ("run", "hello", "--json"), ("tokens", "hello")])
def test_answer_into_a_closed_stdout_is_an_error(tiny_model_path: Path, arguments: tuple[str, ...]) -> None:
    """`tokenglass run … >&-`: with status 0 the answer would be lost without a word."""
    outcome = finish(child(*arguments, "-m", tiny_model_path, preexec_fn=closing(1), stdout=None))
    assert outcome.status == 1
    assert outcome.err.splitlines()[-1] == "tokenglass: cannot write the output: stdout is closed"
    assert "Traceback" not in outcome.err


def test_both_streams_closed_leave_the_status(tiny_model_path: Path) -> None:
    process = child("run", "hello", "-m", tiny_model_path, preexec_fn=closing(1, 2), stdout=None, stderr=None)
    assert process.wait(timeout=60) == 1


def read_all(terminal: int) -> bytes:
    """Everything until the other side is closed, which Linux reports as an error."""
    chunks: list[bytes] = []
    while True:
        try:
            chunk = os.read(terminal, 1 << 16)
        except OSError:
            chunk = b""
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)
