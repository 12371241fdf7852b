"""`run -n 3`: each answer is the one its seed gives alone, and one step makes a token of all of them."""

from __future__ import annotations

import json
import re
import signal
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Command, child, finish
from tests.support.tiny_llama import TinyLlama, write_tiny_llama
from tokenglass.engine import Engine
from tokenglass.engine.request import Sequence

WARM = ("hello", "--raw", "--temperature", 1.2, "--max-tokens", 12)


@pytest.fixture
def run(tokenglass_: Command, tiny_model_path: Path) -> Command:
    return lambda *arguments: tokenglass_("run", "-m", tiny_model_path, *arguments)


def test_each_answer_is_labelled_and_is_what_its_seed_gives_alone(run: Command) -> None:
    outcome = run(*WARM, "--seed", 7, "-n", 3)
    alone = [run(*WARM, "--seed", seed).out for seed in (7, 8, 9)]
    labelled = [f"--- answer {i} of 3, seed {6 + i} ---\n{text}" for i, text in enumerate(alone, start=1)]
    assert outcome.out == "\n".join(labelled)
    assert len(set(alone)) == 3
    line = r"3 answers, 36 output tokens in [\d.]+ s, \d+ tokens/s together \| sha256( [0-9a-f]{12}){3}"
    assert re.fullmatch(line, outcome.err.splitlines()[-1])


def test_json_is_one_object_a_line(run: Command) -> None:
    outcome = run(*WARM, "--seed", 7, "-n", 2, "--json")
    records = [json.loads(line) for line in outcome.out.splitlines()]
    assert [record["settings"]["seed"] for record in records] == [7, 8]
    assert records[1]["token_ids"] == run(*WARM, "--seed", 8, "--json").json["token_ids"]


def test_one_step_serves_all(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []
    step = Engine.step

    def counted(engine: Engine) -> list[Sequence]:
        sequences = step(engine)
        steps.append(len(sequences))
        return sequences

    monkeypatch.setattr(Engine, "step", counted)
    run(*WARM, "--seed", 7, "-n", 4)
    assert steps == [4] * 12


def test_more_answers_than_run_at_once_all_come(run: Command) -> None:
    outcome = run("hello", "--raw", "--temperature", 1, "--max-tokens", 2, "-n", 40)
    assert outcome.out.count("--- answer ") == 40


def test_greedy_answers_are_said_to_be_the_same(run: Command) -> None:
    outcome = run("hello", "--max-tokens", 2, "-n", 2)
    assert "all answers are the same without randomness" in outcome.err


def test_greatest_seed_is_followed_by_the_smallest(run: Command) -> None:
    outcome = run(*WARM, "--seed", (1 << 64) - 1, "-n", 2)
    assert "answer 2 of 2, seed 0 ---" in outcome.out


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_ctrl_c_ends_all_of_them(tmp_path: Path) -> None:
    path = write_tiny_llama(tmp_path / "endless.gguf", shape=TinyLlama(context_length=1 << 16))
    arguments = ("run", "hello", "-m", path, "--raw", "--max-tokens", 30_000, "-n", 2, "--temperature", 1)
    process = child(*arguments)
    assert process.stdout is not None
    process.stdout.read(60)
    process.send_signal(signal.SIGINT)
    outcome = finish(process)
    assert (outcome.status, outcome.out[-1]) == (130, "\n")
    assert "Traceback" not in outcome.err
    assert "1 answers, " in outcome.err


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_ctrl_c_keeps_what_was_made_as_json(tmp_path: Path) -> None:
    path = write_tiny_llama(tmp_path / "endless.gguf", shape=TinyLlama(context_length=1 << 16))
    arguments = ("run", "hello", "-m", path, "--raw", "--max-tokens", 30_000, "-n", 2, "--temperature", 1)
    process = child(*arguments, "--json", "--trace")
    assert process.stderr is not None
    process.stderr.read(1000)  # the trace says that it runs
    process.send_signal(signal.SIGINT)
    outcome = finish(process)
    assert outcome.status == 130
    record = json.loads(outcome.out.splitlines()[-1])  # an answer before it may have ended by itself
    assert record["token_ids"]
    assert record["finish_reason"] == "interrupted"


def test_each_answer_has_its_own_trace(run: Command) -> None:
    outcome = run(*WARM, "--seed", 7, "-n", 2, "--trace")
    assert outcome.err.count("step 1  ") == 2
    assert outcome.out == run(*WARM, "--seed", 7, "-n", 2).out
