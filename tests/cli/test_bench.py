"""`tokenglass bench`: the verb around the measurements, which `tests/bench` looks into."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.support.tiny_llama import TinyLlama, write_tiny_llama
from tokenglass.bench import peers
from tokenglass.cli import bench


@pytest.fixture
def measured(tokenglass_: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setattr(bench, "COLD_STARTS", 1)
    path = write_tiny_llama(tmp_path / "roomy.gguf", shape=TinyLlama(context_length=1024))
    return lambda *arguments: tokenglass_("bench", "-m", path, "--quick", "--threads", 1, *arguments)


def test_json_row_has_what_must_stand_beside_a_number(measured: Command) -> None:
    outcome = measured("--json", "-n", 1)
    record = outcome.json
    assert (outcome.status, outcome.err) == (0, "round 1 of 1\n")
    assert {"time", "commit", "version", "machine", "model", "plan", "peer", "sha256"} < set(record)
    assert record["machine"]["num_threads"] == 1
    assert record["peer"] is None
    assert set(record["results"]) >= {
        "prefill_512_tokens_per_s", "decode_tokens_per_s", "share_of_limit", "python_share", "cold_start_s",
    }  # fmt: skip
    assert all(len(values["tokenglass"]) == 1 for values in record["results"].values())


def test_table_says_what_was_measured(measured: Command) -> None:
    outcome = measured()
    assert outcome.err == "round 1 of 2\nround 2 of 2\n"
    assert "decode" in outcome.out
    assert "2 rounds; decode: 128 tokens after 16; cold start: new process to first token" in outcome.out
    assert "llama" not in outcome.out.replace("roomy.gguf", "")


def test_missing_peer_is_said_before_anything_is_measured(
    measured: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "find_spec", lambda _: None)
    outcome = measured("--vs", "llama.cpp")
    assert outcome.status == 1
    assert outcome.error.endswith("Install it: pip install 'tokenglass[peers]'")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-n", "0"), "rounds must be a whole number from 1"),
        (("--vs", "vllm"), "--vs: invalid choice: 'vllm'"),
        (("--round", "3"), "there is no option --round. Did you mean --rounds?"),
    ],
)
def test_mistake_is_one_line_and_status_2(
    tokenglass_: Command, arguments: tuple[str, ...], words: str
) -> None:
    outcome = tokenglass_("bench", *arguments)
    assert outcome.status == 2
    assert words in outcome.error


def test_a_short_window_is_measured_with_what_fits(tokenglass_: Command, tiny_model_path: Path) -> None:
    outcome = tokenglass_("bench", "-m", tiny_model_path, "--threads", 1, "--quick", "--json")
    assert outcome.status == 0
    assert json.loads(outcome.out)["plan"]["prefills"] == [511]
