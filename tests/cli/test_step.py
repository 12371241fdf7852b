"""`tokenglass step`: by lines from a pipe, and at a keyboard through a pseudo-terminal."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command, Outcome, child, finish
from tests.support.tiny_llama import write_tiny_llama
from tokenglass.cli.columns import width

Steps = Callable[..., Outcome]
PROMPT = ("the water", "--raw", "--threads", 1)


@pytest.fixture
def steps(tokenglass_: Command, tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    """`steps("\\n2\\nq\\n", "--json")` gives these lines to `step` on its stdin."""

    def call(lines: str, *arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
        return tokenglass_("step", "-m", tiny_model_path, *PROMPT, *arguments)

    return call


def states(outcome: Outcome) -> list[dict[str, Any]]:
    return [json.loads(line) for line in outcome.out.splitlines()]


def test_enter_takes_what_run_would_have_taken(
    steps: Steps, tokenglass_: Command, tiny_model_path: Path
) -> None:
    settings = ("--temperature", 1.5, "--top-p", 0.9, "--seed", 5)
    last = states(steps("\n" * 12, "--json", *settings))[-1]
    arguments = ("-m", tiny_model_path, *PROMPT, *settings, "--max-tokens", 12, "--json")
    answer = tokenglass_("run", *arguments).json
    assert last["token_ids"] == answer["token_ids"]
    assert last["text"] == answer["text"]


def test_running_on_is_entering_to_the_end(steps: Steps) -> None:
    by_hand = states(steps("\n" * 9, "--json", "--seed", 1))[-1]
    at_once = states(steps("r 9\n", "--json", "--seed", 1))[-1]
    assert at_once == by_hand
    assert len(states(steps("r\n", "--json", "--max-tokens", 7))[-1]["token_ids"]) == 7


def test_a_number_takes_that_candidate_and_an_id_any_token(steps: Steps) -> None:
    first, second, third, last = states(steps("3\n#77\n", "--json"))
    assert second["token_ids"] == [first["candidates"][2]["token_id"]]
    assert third["token_ids"] == [*second["token_ids"], 77]
    assert last["token_ids"] == third["token_ids"]


def test_back_gives_the_same_numbers_again(steps: Steps) -> None:
    found = states(steps("\n2\n\nb 2\nb\n", "--json"))
    assert found[4] == found[1]
    assert found[5] == found[0]


def test_the_same_branch_twice_is_one_branch(steps: Steps) -> None:
    """GLASS.md D4."""
    found = states(steps("\n\n\nb 2\n#77\nb\n#77\nb\n#77\n", "--json"))
    assert found[-1]["token_ids"] == [*found[1]["token_ids"], 77]
    assert found[-2] == found[5] == found[7]


def test_ids_go_on_as_they_are(steps: Steps) -> None:
    """GLASS.md D6."""
    """The letters h and e stay two tokens, though "he" is one."""
    last = states(steps("#107\n#104\n\n", "--json"))[-1]
    assert last["text"].startswith("he")
    assert last["token_ids"][:2] == [107, 104]


def test_shown_and_rest_are_one(steps: Steps) -> None:
    for state in states(steps("\n\n", "--json", "--temperature", 2, "--top-k", 40, "--top", 3))[:-1]:
        assert sum(c["raw_p"] for c in state["candidates"]) + state["rest_raw_p"] == pytest.approx(
            1, abs=1e-6
        )
        assert sum(c["p"] for c in state["candidates"]) + state["rest_p"] == pytest.approx(1, abs=1e-6)
        assert state["draw"] in [c["token_id"] for c in state["candidates"]]


def test_plain_lines_mark_the_draw_and_end_with_the_text(steps: Steps) -> None:
    outcome = steps("\n\nq\n\n", "--top", 3)
    assert outcome.out.count("→") == 3
    assert "2 tokens taken in 3 forward passes: #" in outcome.err
    text = states(steps("\n\n", "--json"))[-1]["text"]
    assert outcome.out.endswith(text if text.endswith("\n") else text + "\n")


def test_end_token_is_said_and_can_be_left_again(steps: Steps) -> None:
    outcome = steps("#2\nb\nq\n")
    assert '"<|im_end|>" ends the answer here' in outcome.out
    assert "0 tokens taken" in outcome.err
    assert "the answer has ended" in steps("#2\nr\n").err


def test_full_window_is_said_and_can_be_left_again(steps: Steps) -> None:
    outcome = steps("r\nb\n", "--context", 16)
    assert "the context window of 16 is full; b goes back" in outcome.out
    assert "the context window is full" in steps("r\n\n", "--context", 16).err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("zz", "command 'zz' is not known"),
        ("99", "number must be from 1 to 10"),
        ("0", "number must be from 1 to 10"),
        ("#99999", "token id must be a whole number from 0"),
        ("b", "b 1 goes back into the prompt"),
        ("\x1b[2J", "is not known"),
        ("x" * 5000, "is not known"),
    ],
)
def test_bad_line_of_a_script_ends_it_and_loses_nothing(steps: Steps, line: str, words: str) -> None:
    outcome = steps(f"{line}\n\n")
    assert outcome.status == 2
    assert f"line 1 of the commands: {words}" in outcome.err or words in outcome.err
    assert "\x1b" not in outcome.err
    assert "0 tokens taken" in outcome.err


def test_prompt_cannot_come_from_stdin_too(
    tokenglass_: Command, tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"hello")))
    outcome = tokenglass_("step", "-m", tiny_model_path)
    assert outcome.error.startswith("step reads its commands from stdin. Give the prompt as an argument")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_lines_fit_80_columns(steps: Steps, lang: str) -> None:
    outcome = steps("#293\n" * 60 + "\n", "--lang", lang, "--temperature", 1, "--seed", 1)
    assert outcome.status == 0
    tables = [line for line in outcome.out.splitlines() if "│" not in line]
    assert all(width(line) <= 80 for line in tables[:-1])
    assert all(width(line) <= 160 for line in outcome.out.splitlines())  # the text so far: two lines


def test_prompt_of_a_megabyte_is_refused_in_one_line(tokenglass_: Command, tiny_model_path: Path) -> None:
    outcome = tokenglass_("step", "-m", tiny_model_path, "a b " * 250_000, "--raw")
    assert outcome.status == 2
    assert "the context window holds 512" in outcome.err


# --- at a keyboard ---

pytty = pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminal")


class Keyboard:
    """A child at the other end of a pseudo-terminal: `type` what a person types, `until` waits for a text."""

    def __init__(self, *arguments: object, **env: str) -> None:
        import pty

        self.terminal, end = pty.openpty()
        self.seen = ""
        env = {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24", **env}
        self.process = child(*arguments, env=env, stdin=end, stdout=end, stderr=end, start_new_session=True)
        os.close(end)

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def until(self, text: str, times: int = 1, *, seconds: float = 60) -> str:
        import select

        deadline = time.monotonic() + seconds
        while self.seen.count(text) < times:
            assert time.monotonic() < deadline, self.seen
            if select.select([self.terminal], [], [], 0.2)[0]:
                try:
                    block = os.read(self.terminal, 1 << 16)
                except OSError:  # the child closed its end
                    block = b""
                assert block or self.seen.count(text) >= times, self.seen
                self.seen += block.decode(errors="replace")
        return self.seen

    def close(self) -> int:
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            os.close(self.terminal)


@pytty
def test_a_person_steps_errs_goes_back_and_quits(tiny_model_path: Path) -> None:
    keyboard = Keyboard("step", "-m", tiny_model_path, *PROMPT)
    keyboard.until("> ")
    assert "Enter takes →" in keyboard.seen
    keyboard.type("\n")
    keyboard.until("token 2, entropy")
    keyboard.type("zz\n")
    keyboard.until("command 'zz' is not known")
    keyboard.type("b\n")
    keyboard.until("token 1, entropy", 2)
    keyboard.type("2\n")
    keyboard.until("token 2, entropy", 2)
    keyboard.type("r 5\n")
    keyboard.until("token 7, entropy")
    keyboard.type("q\n")
    keyboard.until("6 tokens taken in ")
    assert keyboard.close() == 0


@pytty
@pytest.mark.parametrize("key", ["\x03", "\x04"])
def test_ctrl_c_and_ctrl_d_lose_nothing(tiny_model_path: Path, key: str) -> None:
    keyboard = Keyboard("step", "-m", tiny_model_path, *PROMPT)
    keyboard.until("> ")
    keyboard.type("\n")
    keyboard.until("token 2, entropy")
    if key == "\x03":
        os.kill(keyboard.process.pid, signal.SIGINT)
    else:
        keyboard.type(key)
    keyboard.until("1 tokens taken in ")
    assert keyboard.close() == (130 if key == "\x03" else 0)


@pytty
def test_nothing_hostile_reaches_the_terminal(tmp_path: Path) -> None:
    path = write_tiny_llama(tmp_path / "tiny.gguf")
    keyboard = Keyboard("step", "-m", path, "a\x1b]0;gotcha\x07\u202e", "--raw", "--top", 300, NO_COLOR="1")
    keyboard.until("> ")
    keyboard.type("#30\n#10\n#158\n")  # ESC, BEL and 0x9B
    keyboard.until("token 4, entropy")
    keyboard.type("q\n")
    keyboard.until("3 tokens taken")
    keyboard.close()
    assert not set(keyboard.seen) & set("\x1b\x07\u202e\x9b")


@pytty
def test_reader_that_goes_away_is_no_crash(tiny_model_path: Path) -> None:
    process = child("step", "-m", tiny_model_path, *PROMPT, stdin=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    outcome = finish(process, b"\n" * 50)
    assert outcome.status == 141
    assert "Traceback" not in outcome.err
