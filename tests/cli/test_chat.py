"""`tokenglass chat` through pipes and through a terminal: turns, commands, mistakes, Ctrl-C, hostile text."""

from __future__ import annotations

import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command, Outcome, child, finish
from tests.support.tiny_llama import TinyLlama, write_tiny_llama
from tokenglass.cli.journal import read_notes

NO_END = ("--logit-bias", "0=-100", "--logit-bias", "2=-100")  # the tiny model's end tokens
Chat = Callable[..., Outcome]


@pytest.fixture
def chat(tokenglass_: Command, tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch) -> Chat:
    """`chat("hello", "/tokens", options=("--json",))`: those lines through a pipe, in this process."""

    def call(*lines: str | bytes, options: tuple[object, ...] = ()) -> Outcome:
        raw = b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        return tokenglass_("chat", "-m", tiny_model_path, "--max-tokens", 6, *NO_END, *options)

    return call


def records(outcome: Outcome) -> list[dict[str, Any]]:
    return [json.loads(line) for line in outcome.out.splitlines()]


# --- turns ---


def test_answers_go_to_stdout_and_the_use_of_the_window_to_stderr(chat: Chat) -> None:
    outcome = chat("hello", "and")
    assert outcome.status == 0
    lines = [line for line in outcome.err.splitlines() if "of 512 tokens" in line]
    assert len(lines) == 2
    assert re.match(
        r"\d+ of 512 tokens \| prompt 0 cached \+ \d+ computed, \d+ ms \| \d+ tokens/s$", lines[0]
    )
    assert int(re.findall(r"prompt (\d+) cached", lines[1])[0]) > 0
    assert "cut off at 6 tokens" in outcome.err


def test_first_turn_is_what_run_answers(chat: Chat, tokenglass_: Command, tiny_model_path: Path) -> None:
    (turn,) = records(chat("hello", options=("--json",)))
    run = tokenglass_("run", "hello", "-m", tiny_model_path, "--max-tokens", 6, "--json", *NO_END).json
    assert turn["token_ids"] == run["token_ids"]
    assert turn["text"] == run["text"]


def test_later_turns_reuse_the_earlier_ones(chat: Chat) -> None:
    first, second = records(chat("hello", "and", options=("--json",)))
    cached = [turn["usage"]["prompt_tokens_details"]["cached_tokens"] for turn in (first, second)]
    assert cached[0] == 0
    assert cached[1] >= first["usage"]["prompt_tokens"]


def test_old_turns_are_left_out_where_that_is_asked_and_the_system_text_stays(chat: Chat) -> None:
    turns = [f"question {i} " + "water " * 20 for i in range(8)]
    assert "the context window holds 512" in chat(*turns).err
    outcome = chat(*turns, options=("--truncate", "oldest", "--system", "be brief", "--json"))
    assert outcome.status == 0
    found = records(outcome)
    assert len(found) == 8
    assert found[0]["truncated_tokens"] == 0 < found[-1]["truncated_tokens"]
    assert f"{found[-1]['truncated_tokens']} tokens of the prompt did not fit" in outcome.err
    assert all(turn["usage"]["total_tokens"] <= 512 for turn in found)
    assert "needs --truncate" in chat("hi", options=("--reserve", 3)).err


def test_retry_asks_the_same_again_and_changes_with_the_seed(chat: Chat) -> None:
    options = ("--json", "--temperature", 3, "--seed", 1)
    first, same, other = records(chat("hello", "/retry", "/params seed=2", "/retry", options=options))
    assert same["token_ids"] == first["token_ids"] != other["token_ids"]
    assert same["usage"]["prompt_tokens"] == other["usage"]["prompt_tokens"]
    assert "the same settings give the same answer" in chat("hello", "/retry").err


def test_seed_of_the_command_line_is_used_in_every_turn_and_none_draws(chat: Chat) -> None:
    options = ("--json", "--temperature", 3)
    again = records(chat("hello", *["/retry"] * 4, options=options))
    assert len({tuple(turn["token_ids"]) for turn in again}) > 1


def test_system_message_is_part_of_every_prompt(chat: Chat) -> None:
    def prompt(*lines: str, options: tuple[object, ...] = ()) -> int:
        return int(records(chat(*lines, options=("--json", *options)))[-1]["usage"]["prompt_tokens"])

    assert prompt("/system Be brief", "hello") == prompt("hello", options=("--system", "Be brief"))
    assert prompt("hello") < prompt("/system Be brief", "hello")
    assert "Be brief" in chat("/system Be brief", "/system").err


def test_blank_lines_and_slashes(chat: Chat) -> None:
    assert chat("", "   ").out == ""
    (slash,) = records(chat("//x", options=("--json",)))
    (plain,) = records(chat("x", options=("--json",)))
    assert slash["usage"]["prompt_tokens"] == plain["usage"]["prompt_tokens"] + 1


# --- commands ---


def test_help_names_every_command(chat: Chat) -> None:
    err = chat("/help").err
    for name in ("/system", "/retry", "/params", "/tokens", "/clear", "/save", "/load", "/quit"):
        assert name in err
    assert max(map(len, err.splitlines())) <= 80


def test_quit_ends_before_the_next_line(chat: Chat) -> None:
    assert chat("/quit", "hello").out == ""


def test_tokens_adds_up(chat: Chat) -> None:
    err = chat("hello", "/tokens").err
    numbers = [int(found) for found in re.findall(r"^ +(\d+) (?:user|assistant|what)", err, re.MULTILINE)]
    total = re.search(r"^(\d+) of 512 tokens \(", err, re.MULTILINE)
    assert total
    assert sum(numbers) == int(total[1])


def test_params_change_all_or_nothing(chat: Chat) -> None:
    err = chat(
        "/params temperature=0.7 top-k=3 seed=9 max_tokens=2", "/params top_k=1 top_p=7", "/params"
    ).err
    assert "top_p must be a number from 0 to 1, not 7" in err
    *_, first, second, third = err.splitlines()
    assert "temperature=0.7 top_k=3" in first
    assert f"{second} {third}".endswith("seed=9 max_tokens=2")
    assert max(map(len, (first, second, third))) < 80


def test_params_take_a_space_for_the_sign(chat: Chat) -> None:
    outcome = chat("/params temperature 0.7", "/params")
    assert outcome.status == 0
    assert outcome.err.count("temperature=0.7") == 2


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/params tempreture=1", "there is no setting tempreture. Did you mean temperature?"),
        ("/params zz=1", "There are temperature, "),
        (
            "/params temperature=warm",
            "temperature must be a number, not 'warm'. Like this: /params temperature=1",
        ),
        ("/params temperature", "temperature must be a number, not ''"),
        ("/params max_tokens=0", "max_tokens must be a whole number from 1"),
        ("/params logit_bias=1", "there is no setting logit_bias"),
        ("/hlep", "there is no command /hlep. Did you mean /help?"),
        ("/retry", "there is nothing to ask again"),
        ("/save", "/save needs the name of a file"),
        ("/load", "/load needs the name of a file"),
        ("/load no/such/file", "cannot read no/such/file: "),
        ("/save no/such/file", "cannot write no/such/file: "),
        ("/save a\0b", "cannot write "),
    ],
)
def test_mistake_costs_one_line_and_the_chat_goes_on(chat: Chat, line: str, words: str) -> None:
    outcome = chat(line, "hello")
    assert outcome.status == 1  # of a pipe, where nobody may have read the line
    assert words in outcome.err.splitlines()[0]
    assert outcome.out != ""


def test_saved_chat_goes_on_where_it_was(chat: Chat, tmp_path: Path) -> None:
    path = tmp_path / "my chat.json"
    whole = records(chat("/system S", "hello", f"/save {path}", "and", options=("--json",)))
    saved = json.loads(path.read_text(encoding="utf-8"))
    assert [message["role"] for message in saved["messages"]] == ["system", "user", "assistant"]
    assert saved["messages"][2]["content"] == whole[0]["text"]
    (again,) = records(chat(f"/load {path}", "and", options=("--json",)))
    assert again["token_ids"] == whole[1]["token_ids"]


def test_save_overwrites_its_own_file_only(chat: Chat, tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    assert "exists" not in chat("hello", f"/save {path}", "and", f"/save {path}").err
    before = path.read_text()
    assert f"{path} exists already" in chat("other", f"/save {path}").err
    assert path.read_text() == before


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[1]",
        '{"messages": 1}', '[{"role": "tool", "content": "x"}]', '[{"role": "user", "content": 1}]',
        "[" * 9999, '[{"role": "user", "content": "x"}, {"role": "system", "content": "x"}]',
    ],
)  # fmt: skip
def test_file_that_is_no_chat_changes_nothing(chat: Chat, tmp_path: Path, content: str) -> None:
    path = tmp_path / "chat.json"
    path.write_text(content)
    err = chat("hello", f"/load {path}", "/tokens").err
    assert re.search("is no saved chat|that is not the first", err)
    assert "hello" in err


def test_saved_chat_without_content_is_told_by_message_and_key(chat: Chat, tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_text('[{"role": "user", "content": "x"}, {"role": "assistant"}]')
    assert "is no saved chat: messages[1] has no usable content" in chat(f"/load {path}").err


# --- limits and hostile lines ---


def test_full_window_is_said_with_both_numbers_and_the_chat_stays(chat: Chat) -> None:
    outcome = chat("hello", "a b " * 400, "/tokens")
    assert re.search(
        r"the chat would have \d{3,} tokens and the context window holds 512\. /clear", outcome.err
    )
    assert "a b" not in outcome.err.splitlines()[-2]
    full = chat("hello", options=("--max-tokens", 10_000))
    assert "512 of 512 tokens" in full.err
    assert "the window is full: /clear" in full.err


def test_control_tokens_in_a_message_are_plain_text(chat: Chat) -> None:
    (turn,) = records(chat("<|im_end|>\r", options=("--json",)))
    (plain,) = records(chat("x", options=("--json",)))
    assert turn["usage"]["prompt_tokens"] > plain["usage"]["prompt_tokens"] + 5


def test_lines_that_are_no_text_are_left_out(chat: Chat) -> None:
    outcome = chat(b"\xef\xbb\xbfhello", b"abc\xff", "and")
    assert "line 2 is not UTF-8 at byte 3 and was left out" in outcome.err
    assert outcome.err.count("of 512 tokens") == 2
    assert outcome.status == 1


def test_endless_line_is_left_out(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenglass.cli.chat.MAX_PROMPT_BYTES", 1 << 20)
    outcome = chat(b"x" * (3 << 20), "hello")
    assert "line 1 has more than 1 MB" in outcome.err
    assert outcome.status == 1
    assert outcome.err.count("of 512 tokens") == 1


def test_model_without_a_template_is_refused(tokenglass_: Command, tmp_path: Path) -> None:
    path = write_tiny_llama(tmp_path / "base.gguf", metadata={"tokenizer.chat_template": None})
    assert "This model has no chat template" in tokenglass_("chat", "-m", path).error


def test_template_that_refuses_a_message_costs_that_message_only(
    tokenglass_: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = (
        "{% if 'bad' in messages[-1].content %}{{ raise_exception('\x1b[2J no') }}{% endif %}"
        "{{ messages[-1].content }}"
    )
    path = write_tiny_llama(tmp_path / "rude.gguf", metadata={"tokenizer.chat_template": template})
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"bad\ngood\n")))
    outcome = tokenglass_("chat", "-m", path, "--max-tokens", 4)
    assert outcome.status == 1
    assert "\x1b" not in outcome.err
    assert outcome.err.count("of 512 tokens") == 1


def test_a_turn_is_noted(chat: Chat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENGLASS_NOTES", "1")
    monkeypatch.setenv("TOKENGLASS_HOME", str(tmp_path))
    chat("my secret", "/retry")
    notes, _ = read_notes()
    assert [note["verb"] for note in notes] == ["chat", "chat"]
    assert "secret" not in (tmp_path / "notes.jsonl").read_text()


# --- a terminal ---


class Terminal:
    """A child process on a pseudo-terminal of 80 columns, driven by what it shows."""

    def __init__(self, *arguments: object, env: dict[str, str] | None = None) -> None:
        self.ours, theirs = os.openpty()
        self.process = child(
            *arguments,
            env={"TERM": "xterm", "COLUMNS": "80", **(env or {})},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            preexec_fn=lambda: os.login_tty(theirs),
        )
        os.close(theirs)
        self.shown = ""

    def type(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def wait_for(self, pattern: str, *, timeout_s: float = 20) -> str:
        """What was shown up to and with `pattern`; the rest stays for the next call."""
        end_s = time.monotonic() + timeout_s
        while not (found := re.search(pattern, self.shown)):
            assert time.monotonic() < end_s, self.shown
            if not select.select([self.ours], [], [], 1)[0]:
                continue
            try:
                chunk = os.read(self.ours, 1 << 16)
            except OSError:
                chunk = b""
            assert chunk, f"ended without {pattern!r}: {self.shown!r}"
            self.shown += chunk.decode(errors="replace")
        text, self.shown = self.shown[: found.end()], self.shown[found.end() :]
        return text

    def interrupt(self, pattern: str) -> str:
        """Ctrl-C until `pattern` shows. A signal that comes just before readline begins to wait is only seen
        with the next one: Python's readline looks at signals when one wakes it.
        """
        for _ in range(9):
            self.type("\x03")
            with suppress(AssertionError):
                return self.wait_for(pattern, timeout_s=2)
        return self.wait_for(pattern)

    def close(self) -> int:
        try:
            return self.process.wait(timeout=30)
        finally:
            self.process.kill()
            os.close(self.ours)


@pytest.fixture(scope="module")
def long_model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model with a window that takes it a long time to fill."""
    path = tmp_path_factory.mktemp("models") / "long.gguf"
    return write_tiny_llama(path, weight_type="Q4_1", shape=TinyLlama(context_length=1 << 16))


@pytest.fixture
def terminal(long_model_path: Path) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def start(*options: object) -> Terminal:
        opened.append(Terminal("chat", "-m", long_model_path, *NO_END, *options, env={"NO_COLOR": "1"}))
        return opened[-1]

    yield start
    for one in opened:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def test_terminal_has_a_prompt_answers_and_ends_with_ctrl_d(terminal: Callable[..., Terminal]) -> None:
    chat = terminal("--max-tokens", 5)
    assert "/help lists the commands" in chat.wait_for("> ")
    chat.type("hello\n")
    assert "5 tokens" in chat.wait_for(r"cut off at [^\n]*\n.*?> ")
    chat.type("\x04")
    assert chat.close() == 0


def test_ctrl_c_stops_the_answer_keeps_the_text_and_the_chat_goes_on(
    terminal: Callable[..., Terminal],
) -> None:
    chat = terminal("--max-tokens", 60_000)
    chat.wait_for("> ")
    chat.type("hello\n")
    chat.wait_for(r"hello\r\n[^>]{30,}")
    chat.type("\x03")
    chat.wait_for(r"stopped; what was said stays in the chat")
    chat.type("/tokens\n")
    shown = chat.wait_for(r"of 65536 tokens \(")
    assert re.search(r"\d+ assistant", shown)
    chat.type("/params max_tokens=3\nagain\n")
    assert int(re.findall(r"prompt (\d+) cached", chat.wait_for(r"prompt \d+ cached"))[0]) > 10
    chat.type("/quit\n")
    assert chat.close() == 0


def test_ctrl_c_at_the_prompt_says_how_to_end(terminal: Callable[..., Terminal]) -> None:
    chat = terminal()
    chat.wait_for("> ")
    chat.interrupt("/quit or Ctrl-D ends the chat\\r\\n.*> ")
    chat.type("\x04")
    assert chat.close() == 0


def test_terminal_shows_no_control_characters_of_the_chat(
    terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps([{"role": "user", "content": "a\x1b]0;gotcha\x07\u202eb"}]))
    chat = terminal("--max-tokens", 3)
    chat.wait_for("> ")
    chat.type(f"/load {path}\n/tokens\n")
    shown = chat.wait_for("what the template adds")
    assert "gotcha" in shown
    assert "\x1b]0" not in shown
    assert "\u202e" not in shown
    chat.type("/quit\n")
    assert chat.close() == 0


def test_ctrl_c_with_lines_from_a_pipe_ends_with_130(long_model_path: Path) -> None:
    process = child("chat", "-m", long_model_path, "--max-tokens", 60_000, *NO_END, stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"hello\nnever asked\n")
    process.stdin.flush()
    assert process.stdout.read(8)
    process.send_signal(signal.SIGINT)
    outcome = finish(process)
    assert outcome.status == 130
    assert "Traceback" not in outcome.err
    assert outcome.err.count("of 65536 tokens") == 1
