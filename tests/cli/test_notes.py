"""The notes: one line for a run, no prompt in it unless asked, and never a failed run because of one."""

from __future__ import annotations

import csv
import io
import json
import multiprocessing
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.support.tiny_llama import TinyLlama, write_tiny_llama
from tokenglass.cli import journal
from tokenglass.cli.journal import add_note, journal_path, read_notes


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOKENGLASS_NOTES", "1")
    monkeypatch.setenv("TOKENGLASS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def run(tokenglass_: Command, tiny_model_path: Path) -> Command:
    return lambda *arguments: tokenglass_("run", "-m", tiny_model_path, "--max-tokens", 4, *arguments)


def test_a_run_leaves_one_line_with_its_numbers_and_no_prompt(run: Command, home: Path) -> None:
    record = run("my secret", "--temperature", 1, "--seed", 7, "--json").json
    (note,), num_bad = read_notes()
    assert (home / "notes.jsonl").read_bytes().count(b"\n") == 1
    assert num_bad == 0
    assert note["verb"] == "run"
    assert note["model"] == record["model"]
    assert note["prompt_tokens"] == record["usage"]["prompt_tokens"]
    assert note["output_tokens"] == 4
    assert note["forward_passes"] == 4
    assert note["seed"] == 7
    assert note["sha256"] == record["sha256"]
    assert "secret" not in (home / "notes.jsonl").read_text()


def test_prompts_are_kept_when_asked(run: Command, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("first one", "--with-prompts")
    monkeypatch.setenv("TOKENGLASS_NOTES", "prompts")
    run("second one")
    assert [note["prompt"] for note in read_notes()[0]] == ["first one", "second one"]


def test_switched_off_writes_nothing(run: Command, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENGLASS_NOTES", "0")
    assert run("hello").status == 0
    assert not home.exists()


def test_a_folder_that_cannot_be_written_is_silent_and_said_with_v(run: Command, home: Path) -> None:
    home.write_text("a file is in the way")
    quiet, loud = run("hello"), run("hello", "-v")
    assert quiet.status == loud.status == 0
    assert "note was written" not in quiet.err
    assert "no note was written: " in loud.err.splitlines()[-1]


def test_a_bench_leaves_one_line(tokenglass_: Command, tmp_path: Path, home: Path) -> None:
    path = write_tiny_llama(tmp_path / "tiny.gguf", shape=TinyLlama(context_length=1024))
    assert tokenglass_("bench", "-m", path, "--only", "decode", "-n", 1, "--json").status == 0
    (note,), _ = read_notes()
    assert (note["verb"], note["output_tokens"]) == ("bench", 64)
    assert note["decode_tokens_per_s"] > 0


def test_table_fits_in_80_columns(tokenglass_: Command, home: Path) -> None:
    add_note(
        "bench", model="a-model-with-a-very-long-name-q4_k_m.gguf", prompt_tokens=123456, output_tokens=65536,
        decode_tokens_per_s=1234.5, memory_bytes=12_345_000_000, seed=4294967295, sha256="0123456789ab",
    )  # fmt: skip
    outcome = tokenglass_("notes")
    assert max(map(len, outcome.out.splitlines())) <= 80
    assert "0123456789ab" in outcome.out
    assert "1234 " in outcome.out


def test_nothing_yet_says_where_notes_come_from(tokenglass_: Command, home: Path) -> None:
    outcome = tokenglass_("notes")
    assert (outcome.status, outcome.out) == (0, "")
    assert str(journal_path()) in outcome.err


def test_number_json_and_clear(tokenglass_: Command, home: Path) -> None:
    for seed in range(25):
        add_note("run", seed=seed)
    assert tokenglass_("notes").out.count("\n") == 1 + 20
    newest = [json.loads(line)["seed"] for line in tokenglass_("notes", "--json", "-n", 2).out.splitlines()]
    assert newest == [23, 24]
    assert tokenglass_("notes", "--clear").err == "25 notes removed\n"
    assert not journal_path().exists()


def test_csv_has_every_field_and_runs_nothing(tokenglass_: Command, home: Path) -> None:
    add_note("run", prompt='=HYPERLINK("http://x"),\n"quoted"', seed=-1)
    (row,) = csv.DictReader(io.StringIO(tokenglass_("notes", "--csv").out))
    assert tuple(row) == journal.FIELDS
    assert row["prompt"] == '\'=HYPERLINK("http://x"),\n"quoted"'
    assert row["seed"] == "-1"


def test_lines_that_are_no_notes_are_counted_and_harm_nothing(tokenglass_: Command, home: Path) -> None:
    add_note("run", seed=1)
    with journal_path().open("ab") as file:
        file.write(b'{"cut": \n\xff\xfe\n[1]\n' + b"[" * 100_000 + b'\n{"seed": {"a": 1}, "verb": 5}\n')
    outcome = tokenglass_("notes")
    assert outcome.status == 0
    assert "4 lines are no notes" in outcome.err


def test_full_file_moves_over_and_nothing_newer_is_lost(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "MAX_BYTES", 1000)
    for seed in range(40):
        assert add_note("run", seed=seed) is None
    assert journal_path().stat().st_size <= 1000
    assert sum(file.stat().st_size for file in home.glob("*.jsonl")) <= 2000
    seeds = [note["seed"] for note in read_notes()[0]]
    assert seeds == list(range(seeds[0], 40))
    assert len(seeds) > 10


def write_many(first: int) -> None:
    for seed in range(first, first + 200):
        add_note("run", seed=seed, model="m" * 200)


def test_two_processes_never_mix_their_lines(home: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write_many, args=(first,)) for first in (0, 1000)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    notes, num_bad = read_notes()
    assert num_bad == 0
    assert sorted(note["seed"] for note in notes) == [*range(200), *range(1000, 1200)]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_in_the_place_of_the_file_holds_nobody_up(home: Path) -> None:
    journal_path().parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(journal_path())
    assert add_note("run", model="m") is not None
