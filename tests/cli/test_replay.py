"""`tokenglass replay`: a stored trace gives the same tokens again, and a trace that lies harms nobody."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command, Outcome, child
from tests.cli.test_output import CONTROLS, read_all
from tests.support.tiny_llama import TinyLlama, write_tiny_llama

Lines = list[dict[str, Any]]


@pytest.fixture
def trace(tokenglass_: Command, tiny_model_path: Path, tmp_path: Path) -> Callable[..., Path]:
    """Runs with these options and returns the stored trace."""

    def store(*options: object) -> Path:
        path = tmp_path / "t.jsonl"
        arguments = ("run", "-m", tiny_model_path, "hello", "--trace-file", path, *options)
        assert tokenglass_(*arguments).status == 0
        return path

    return store


@pytest.fixture
def replay(tokenglass_: Command, tiny_model_path: Path) -> Command:
    return lambda *arguments: tokenglass_("replay", "-m", tiny_model_path, *arguments)


def edited(path: Path, edit: Callable[[Lines], object]) -> Path:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    edit(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--raw", "--max-tokens", 40),
        ("--temperature", 1.5, "--top-k", 40, "--min-p", 0.01),
        ("--temperature", 1, "--typical-p", 0.7, "--top-p", 0.95, "--no-cache"),
        ("--preset", "creative", "--presence-penalty", 0.5, "--frequency-penalty", 0.2),
        ("--repetition-penalty", 1.2, "--logit-bias", "70=-100", "--logit-bias", "80=5"),
        ("--activations", "f32", "--kv", "f32", "--context", 64, "--system", "Be brief"),
        ("--max-tokens", 0),
        ("--max-tokens", 30, "--min-tokens", 20, "--temperature", 2, "--ignore-eos"),
    ],
)
def test_every_kind_of_run_repeats(
    trace: Callable[..., Path], replay: Command, options: tuple[object, ...]
) -> None:
    path = trace("--max-tokens", 24, *options)
    num_tokens = len(path.read_text(encoding="utf-8").splitlines()) - 1
    outcome = replay(path)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == f"all {num_tokens} tokens are the same\n"


def test_run_that_a_stop_text_ended_repeats_with_its_end(trace: Callable[..., Path], replay: Command) -> None:
    path = trace("--max-tokens", 32)
    text = "".join(json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()[1:])
    path = trace("--max-tokens", 32, "--stop", text[8:10])
    assert replay(path, "--json").json["equal"]
    outcome = replay(edited(path, lambda lines: lines[-1].update(finish_reason="length")))
    assert (outcome.status, "length in the trace, stop now" in outcome.out) == (1, True)


def test_token_that_differs_is_named_and_ends_the_replay(trace: Callable[..., Path], replay: Command) -> None:
    path = trace("--max-tokens", 12, "--raw")
    edited(path, lambda lines: lines[5]["decision"].update(token_id=75))
    outcome = replay(path)
    assert outcome.status == 1
    assert re.fullmatch(
        r'token 5 differs: 75 "H" in the trace, \d+ .+ now; 4 before it are the same\n', outcome.out
    )
    assert replay(path, "--json").json["first_difference"]["trace"] == 75


def test_interrupted_trace_is_compared_as_far_as_it_goes(trace: Callable[..., Path], replay: Command) -> None:
    path = edited(trace("--max-tokens", 12), lambda lines: lines.__delitem__(slice(5, None)))
    assert replay(path).out == "all 4 tokens are the same\n"


def test_longer_trace_than_the_model_gives_is_a_difference(
    trace: Callable[..., Path], replay: Command
) -> None:
    def shorten(lines: Lines) -> None:
        lines[0]["settings"]["max_tokens"] = 3

    result = replay(edited(trace("--max-tokens", 6), shorten), "--json")
    assert result.status == 1
    assert result.json["equal_tokens"] == 3


def test_another_model_file_is_said(trace: Callable[..., Path], tokenglass_: Command, tmp_path: Path) -> None:
    other = write_tiny_llama(tmp_path / "other.gguf", shape=TinyLlama(seed=1))
    outcome = tokenglass_("replay", trace(), "-m", other)
    assert outcome.status == 1
    assert outcome.err == "other.gguf is not the file of the trace: tokens may differ\n"


def test_model_is_found_by_the_name_in_the_trace(
    trace: Callable[..., Path], tokenglass_: Command, tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = trace("--max-tokens", 2)
    assert "there is no file 'tiny-llama.gguf'" in tokenglass_("replay", path).error
    monkeypatch.chdir(tiny_model_path.parent)
    assert tokenglass_("replay", path).status == 0


def test_show_needs_no_model(trace: Callable[..., Path], tokenglass_: Command) -> None:
    path = edited(trace("--max-tokens", 3, "--raw"), lambda lines: lines[0].update(model={}))
    outcome = tokenglass_("replay", path, "--show")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.count("\nstep ") + outcome.out.startswith("step ") == 3
    header, *events = json.loads(tokenglass_("replay", path, "--show", "--json").out)
    assert header["tokenglass_trace"] == 1
    assert [event["index"] for event in events] == [0, 1, 2]


# --- traces that lie ---


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("prompt_ids", None, "no usable prompt_ids"),
        ("prompt_ids", ["5"], "no usable prompt_ids"),
        ("prompt_ids", [True], "no usable prompt_ids"),
        ("prompt_ids", [], "prompt is empty"),
        ("prompt_ids", [1 << 70], "prompt_ids must name tokens from 0"),
        ("settings", [], "no usable settings"),
        ("model", "x", "no usable model"),
        ("settings.temperature", "hot", "temperature must be a number"),
        ("settings.seed", -1, "seed must be a whole number"),
        ("settings.stop", [1], "no usable prompt_ids or stop"),
        ("settings.logit_bias", {"x": 1}, "logit_bias that names no tokens"),
        ("settings.use_cache", 1, "no usable use_cache"),
        ("settings.max_tokens", 1.5, "max_tokens must be a whole number"),
        ("settings.activations", "i4", "activations must be int8 or f32"),
        ("settings.context_length", "1", "no usable context_length"),
        ("settings.context_length", 1 << 50, "context_length must be a whole number"),
    ],
)
def test_header_that_describes_no_run_is_refused(
    trace: Callable[..., Path], replay: Command, name: str, value: object, words: str
) -> None:
    def spoil(lines: Lines) -> None:
        part = lines[0]
        for step in name.split(".")[:-1]:
            part = part[step]
        part[name.split(".")[-1]] = value

    outcome = replay(edited(trace("--max-tokens", 2), spoil))
    assert outcome.status == 2
    assert words in outcome.error


def test_file_that_is_no_trace_is_refused(
    tokenglass_: Command, tiny_model_path: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").write_bytes(b"")
    for path in (tmp_path / "empty", tmp_path / "none", tiny_model_path, tmp_path):
        assert tokenglass_("replay", path).status == 2
        assert tokenglass_("replay", path, "--show").error


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals of Unix")
def test_hostile_text_of_a_trace_does_not_reach_the_terminal(trace: Callable[..., Path]) -> None:
    hostile = "\x1b]0;gotcha\x07\x1b[2J\u202egpj.exe\u2066\x9b"

    def spoil(lines: Lines) -> None:
        for line in lines[1:]:
            line.update(text=hostile, phase=hostile, token_bytes="G1sySg==")
            line["top_bytes"] = ["G1sySg=="] * len(line["top_bytes"])
            line["decision"]["stages"] = [{"name": hostile, "setting": 1e299, "survivors": 1, "mass": 1.0}]
            line["decision"]["top"][0]["p"] = 1e200  # a bar as long as the universe

    path = edited(trace("--max-tokens", 3, "--temperature", 1), spoil)
    ours, theirs = os.openpty()
    process = child(
        "replay", path, "--show", stdin=theirs, stdout=theirs, stderr=theirs, env={"TERM": "xterm"}
    )
    os.close(theirs)
    screen = read_all(ours).decode().replace("\r\n", "\n")
    os.close(ours)
    assert process.wait(timeout=60) == 0
    assert "gotcha" in screen  # nothing is lost …
    left = re.sub(r"\x1b\[[0-9;]*m", "", screen)
    assert not set(left) & (CONTROLS | {"\u202e", "\u2066"})  # … and nothing obeyed


def test_hostile_text_in_a_pipe_begins_no_line(trace: Callable[..., Path], tokenglass_: Command) -> None:
    def spoil(lines: Lines) -> None:
        lines[1]["phase"] = "x\nstep 99  position 1"
        lines[1]["token_bytes"] = "Cg=="

    outcome: Outcome = tokenglass_("replay", edited(trace("--max-tokens", 1), spoil), "--show")
    assert "\nstep 99" not in outcome.out
