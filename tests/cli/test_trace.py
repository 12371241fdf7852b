"""`run --trace` and `--trace-file`: what they show, that it adds up, and that looking changes nothing."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command, child, finish
from tests.cli.test_output import CONTROLS, NOISE, read_all
from tests.support.tiny_llama import TinyLlama, write_tiny_llama
from tokenglass.cli.output import visible
from tokenglass.trace import TokenEvent, read_trace

WARM = ("--temperature", 1.3, "--top-p", 0.9, "--seed", 4)
COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # all that our own drawing may send


@pytest.fixture
def run(tokenglass_: Command, tiny_model_path: Path) -> Command:
    return lambda *arguments: tokenglass_("run", "-m", tiny_model_path, "hello", "--raw", *arguments)


def stored(run: Command, path: Path, *options: object) -> tuple[dict[str, Any], list[TokenEvent], str]:
    outcome = run("--trace-file", path, *options)
    assert outcome.status == 0
    return *read_trace(path), outcome.out


# --- looking changes nothing ---


@pytest.mark.parametrize(
    "level",
    [
        ("--trace",),
        ("--trace", "--trace-top", 0),
        ("--trace", "--trace-top", 300),
        ("--slow", "1000/s"),
        ("--no-cache",),
        ("--no-cache", "--trace"),
    ],
)
@pytest.mark.parametrize("choice", [(), WARM, ("--repetition-penalty", 1.3), (*WARM, "--typical-p", 0.8)])
def test_nothing_that_is_watched_changes_a_token(
    run: Command, level: tuple[object, ...], choice: tuple[object, ...]
) -> None:
    plain = run("--max-tokens", 24, "--json", *choice).json
    watched = run("--max-tokens", 24, "--json", *choice, *level).json
    assert (watched["token_ids"], watched["text"]) == (plain["token_ids"], plain["text"])


def test_without_the_cache_every_step_is_a_prefill(run: Command, tmp_path: Path) -> None:
    header, events, _ = stored(run, tmp_path / "t.jsonl", "--no-cache", "--max-tokens", 4)
    assert header["settings"]["use_cache"] is False
    assert [event.phase for event in events] == ["prefill"] * 4


# --- what a step shows ---


def test_text_stays_whole_on_stdout_and_the_steps_are_plain_lines_on_stderr(run: Command) -> None:
    plain = run("--max-tokens", 5, *WARM)
    traced = run("--max-tokens", 5, *WARM, "--trace", "--trace-top", 3)
    assert traced.out == plain.out
    lines = traced.err.splitlines()
    assert sum(line.startswith("step ") for line in lines) == 5
    assert sum(line.startswith("> ") for line in lines) == 5
    assert sum(line.startswith("  rest ") for line in lines) == 5
    assert any(re.fullmatch(r"  top_p 0\.9 leaves \d+ with 0\.9\d\d\d of the mass", line) for line in lines)
    rank = r"  rank \d+  surprisal [\d.]+ bits  entropy [\d.]+ bits  (prefill|decode) [\d.]+ ms  KV \d+ kB"
    assert sum(bool(re.fullmatch(rank, line)) for line in lines) == 5
    assert "\x1b" not in traced.err
    assert max(map(len, lines[1:-1])) <= 80


def test_greedy_says_that_nothing_was_drawn(run: Command) -> None:
    assert "  greedy: the best token, nothing is drawn\n" in run("--max-tokens", 1, "--trace").err
    biased = run("--max-tokens", 1, "--trace", "--logit-bias", "5=1").err
    assert "  bias and penalties first\n" in biased


def test_raw_and_final_probability_are_both_there_and_temperature_moves_only_one(
    run: Command, tmp_path: Path
) -> None:
    """GLASS.md D2."""
    first = [
        stored(run, tmp_path / "t.jsonl", "--max-tokens", 1, "--seed", 1, "--temperature", t)[1][0].decision
        for t in (0.5, 1.0)
    ]
    raw = [{c.token_id: c.raw_p for c in decision.top[:5]} for decision in first]
    assert raw[0] == raw[1]
    cold, warm = first
    assert [c.p for c in warm.top] == pytest.approx([c.raw_p for c in warm.top])
    expected = [c.raw_p**2 for c in cold.top]  # softmax(z / 0.5) is proportional to p squared
    assert cold.top[0].p / cold.top[1].p == pytest.approx(expected[0] / expected[1])


def test_chosen_token_is_always_shown_with_its_rank_and_everything_adds_up(
    run: Command, tmp_path: Path
) -> None:
    """GLASS.md D3."""
    options = ("--temperature", 3, "--seed", 2, "--max-tokens", 40, "--trace-top", 5)
    _, events, _ = stored(run, tmp_path / "t.jsonl", *options)
    ranks = [event.decision.rank for event in events]
    assert max(ranks) > 50
    for decision in (event.decision for event in events):
        assert len(decision.top) == 5 + (decision.rank > 5)
        assert decision.token_id in [c.token_id for c in decision.top]
        assert sum(c.raw_p for c in decision.top) + decision.rest_raw_p == pytest.approx(1, abs=1e-6)
        assert sum(c.p for c in decision.top) + decision.rest_p == pytest.approx(1, abs=1e-6)


def test_at_temperature_zero_the_raw_distribution_is_shown(run: Command, tmp_path: Path) -> None:
    """GLASS.md D3: not the first ids of the vocabulary, and not a distribution with one token."""
    greedy = stored(run, tmp_path / "t.jsonl", "--max-tokens", 1)[1][0].decision
    drawn = stored(run, tmp_path / "t.jsonl", "--max-tokens", 1, "--temperature", 1)[1][0].decision
    assert [(c.token_id, c.raw_p) for c in greedy.top] == [(c.token_id, c.raw_p) for c in drawn.top[:5]]
    assert [c.p for c in greedy.top] == [1.0, 0.0, 0.0, 0.0, 0.0]


def test_bytes_of_parts_of_characters_are_real_and_join_to_the_text(run: Command, tmp_path: Path) -> None:
    """GLASS.md D1."""
    path = tmp_path / "t.jsonl"
    _, events, out = stored(run, path, *NOISE, "--trace", "--trace-top", 2)
    joined = b"".join(event.token_bytes for event in events if not event.token_bytes.startswith(b"<|"))
    assert "".join(event.text for event in events) == joined.decode(errors="replace")
    assert out.removesuffix("\n") == "".join(event.text for event in events).removesuffix("\n")
    torn = [
        event.token_bytes for event in events if event.token_bytes >= b"\x80" and len(event.token_bytes) == 1
    ]
    shown = run(*NOISE, "--trace", "--trace-top", 0).err
    assert torn
    assert all(f"  {raw.hex()}\n" in shown for raw in torn)


# --- the file ---


def test_header_says_everything_that_made_the_answer(
    run: Command, tiny_model_path: Path, tmp_path: Path
) -> None:
    header, events, _ = stored(run, tmp_path / "t.jsonl", *WARM, "--max-tokens", 3, "--logit-bias", "7=-100")
    assert header["model"]["name"] == tiny_model_path.name  # not the folder of this machine
    assert header["model"]["num_bytes"] == tiny_model_path.stat().st_size
    assert len(header["model"]["sha256"]) == 64
    assert header["prompt_ids"]
    assert header["settings"]["logit_bias"] == {"7": -100.0}
    assert (header["settings"]["temperature"], header["settings"]["seed"]) == (1.3, 4)
    assert str(tiny_model_path.parent) not in (tmp_path / "t.jsonl").read_text(encoding="utf-8")
    assert [event.index for event in events] == [0, 1, 2]


def test_seed_that_was_drawn_is_stored(run: Command, tmp_path: Path) -> None:
    header, _, _ = stored(run, tmp_path / "t.jsonl", "--temperature", 1, "--max-tokens", 1)
    assert isinstance(header["settings"]["seed"], int)


def test_trace_file_never_overwrites_the_model(run: Command, tiny_model_path: Path) -> None:
    before = tiny_model_path.read_bytes()
    outcome = run("--trace-file", tiny_model_path)
    assert (outcome.status, tiny_model_path.read_bytes()) == (2, before)
    assert "--trace-file would overwrite the model" in outcome.err


def test_trace_file_that_cannot_be_written_is_one_line(run: Command, tmp_path: Path) -> None:
    outcome = run("--trace-file", tmp_path / "none" / "t.jsonl")
    assert outcome.status == 1
    assert outcome.err.splitlines()[-1].endswith("t.jsonl: No such file or directory")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_full_disk_under_the_trace_is_one_line(run: Command) -> None:
    outcome = run("--trace-file", "/dev/full", "--max-tokens", 2)
    assert outcome.status == 1
    assert outcome.err.splitlines()[-1] == "tokenglass: cannot write /dev/full: No space left on device"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--trace-top", 3), "--trace-top shows nothing without --trace or --trace-file"),
        (("--trace", "--trace-top", -1), "trace_top must be a whole number from 0"),
        (("--trace-file", "t.jsonl", "-n", 2), "--trace-file holds one answer. Leave out -n"),
        (("--slow", "0/s"), "--slow: must be a rate from 0.001/s to 1000/s, like 2/s, not '0/s'"),
        (("--slow", "fast"), "like 2/s, not 'fast'"),
        (("--slow", "nan"), "like 2/s, not 'nan'"),
        (("--slow", "2/s", "-n", 2), "--slow is for watching one answer. Leave out -n"),
        (("--logit-bias", "7"), "--logit-bias: must be ID=VALUE, like 42=-100, not '7'"),
        (("--logit-bias", "7=nan"), "logit_bias[7] must be a number from -100 to 100"),
        (("--preset", "poetry"), "--preset: invalid choice: 'poetry'"),
        (("--min-p", 2), "min_p must be a number from 0 to 1"),
        (("-n", 0), "answers must be a whole number from 1"),
    ],
)
def test_mistake_is_one_line_and_status_2(run: Command, options: tuple[object, ...], words: str) -> None:
    outcome = run(*options)
    assert outcome.status == 2
    assert words in outcome.err


def test_bias_on_a_token_that_is_not_there_is_refused(run: Command) -> None:
    """B28."""
    outcome = run("--logit-bias", "99999=1")
    assert outcome.status == 2
    assert "logit_bias" in outcome.err.splitlines()[-1]


# --- in a terminal ---


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals of Unix")
class TestTerminal:
    def screen(self, *arguments: object, env: dict[str, str] | None = None) -> str:
        ours, theirs = os.openpty()
        process = child(*arguments, stdin=theirs, stdout=theirs, stderr=theirs, env=env)
        os.close(theirs)
        text = read_all(ours).decode().replace("\r\n", "\n")
        os.close(ours)
        assert process.wait(timeout=60) == 0
        return text

    def test_answer_stands_whole_after_its_steps(self, tiny_model_path: Path) -> None:
        arguments = ("run", "hello", "-m", tiny_model_path, *NOISE)
        piped = finish(child(*arguments)).out
        screen = self.screen(*arguments, "--trace", "--trace-top", 3, env={"TERM": "xterm", "COLUMNS": "80"})
        assert "\x1b[1mstep 1 " in screen
        assert visible(piped) in screen  # not cut into pieces by the steps
        left = COLOURS.sub("", screen)
        assert not set(left) & CONTROLS
        steps = left[left.index("step 1 ") : left.index(visible(piped))]
        assert max(map(len, steps.splitlines())) <= 80

    @pytest.mark.parametrize("env", [{"NO_COLOR": "1", "TERM": "xterm"}, {"TERM": "dumb"}])
    def test_no_colour_where_none_is_wanted(self, tiny_model_path: Path, env: dict[str, str]) -> None:
        arguments = ("run", "hello", "-m", tiny_model_path, "--raw", "--max-tokens", 3, "--trace")
        screen = self.screen(*arguments, env=env)
        assert "step 3" in screen
        assert not re.search(r"\x1b\[[0-9;]*3[0-7]", screen)

    def test_bar_is_as_long_as_the_probability(self, tiny_model_path: Path) -> None:
        arguments = ("run", "hello", "-m", tiny_model_path, "--raw", "--max-tokens", 1, "--trace")
        screen = COLOURS.sub("", self.screen(*arguments, env={"TERM": "xterm", "COLUMNS": "80"}))
        chosen, other = (
            next(line for line in screen.splitlines() if line[:3] == mark) for mark in ("> 1", "  2")
        )
        assert (chosen.count("█"), other.count("█")) == (12, 0)  # greedy: all of it, and nothing

    def test_both_streams_in_one_pipe_do_not_mix(self, tiny_model_path: Path) -> None:
        arguments = ("run", "hello", "-m", tiny_model_path, "--raw", "--max-tokens", 6)
        answer = finish(child(*arguments)).out
        both = finish(child(*arguments, "--trace", stderr=-2)).out  # -2: subprocess.STDOUT
        assert f"\n{answer}" in both


# --- a real model ---


@pytest.mark.real_models
def test_capital_of_france_is_seen_to_be_chosen(
    tokenglass_: Command, real_model_path: Path, tmp_path: Path
) -> None:
    path = tmp_path / "t.jsonl"
    prompt = ("run", "The capital of France is", "--raw", "-m", real_model_path)
    tokenglass_(*prompt, "--max-tokens", 1, "--trace-file", path)
    [event] = read_trace(path)[1]
    assert (event.token_bytes, event.decision.rank, event.top_bytes[0]) == (b" Paris", 1, b" Paris")


def test_window_that_fills_up_is_traced_to_its_end(tokenglass_: Command, tmp_path: Path) -> None:
    model = write_tiny_llama(tmp_path / "short.gguf", shape=TinyLlama(context_length=32))
    path = tmp_path / "t.jsonl"
    tokenglass_("run", "-m", model, "hello", "--raw", "--trace-file", path, "--no-cache")
    header, events = read_trace(path)
    assert len(header["prompt_ids"]) + len(events) == 32
    assert json.loads(path.read_text(encoding="utf-8").splitlines()[-1])["finish_reason"] == "length"
