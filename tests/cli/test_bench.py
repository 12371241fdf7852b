"""`tokenglass bench`: the verb around the measurements, which `tests/bench` looks into."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.support.tiny_llama import TinyLlama, write_tiny_llama
from tokenglass.bench import peers
from tokenglass.bench.plan import Plan
from tokenglass.cli import bench


@pytest.fixture
def measured(tokenglass_: Command, tmp_path: Path) -> Command:
    path = write_tiny_llama(tmp_path / "roomy.gguf", shape=TinyLlama(context_length=1024))
    return lambda *arguments: tokenglass_("bench", "-m", path, "--threads", 1, *arguments)


def test_json_row_has_what_must_stand_beside_a_number(
    measured: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "QUICK", Plan(prefills=(64,), rows=(2,), cold_starts=1))
    outcome = measured("--json", "-n", 1)
    record = outcome.json
    assert (outcome.status, outcome.err) == (0, "round 1 of 1\n")
    assert {"time", "commit", "version", "machine", "model", "plan", "peers", "sha256"} < set(record)
    assert record["machine"]["num_threads"] == 1
    assert record["peers"] == []
    assert set(record["results"]) >= {
        "read_1_bytes_per_s", "read_bytes_per_s", "int8_per_s", "prefill_64_tokens_per_s",
        "prefill_64_share", "decode_0_tokens_per_s", "decode_512_share", "rows_2_tokens_per_s",
        "cold_start_s",
    }  # fmt: skip
    assert all(len(values["tokenglass"]) == 1 for values in record["results"].values())


def test_table_says_what_was_measured(measured: Command) -> None:
    outcome = measured("-n", 2, "--only", "decode", "--decode", "0,16")
    assert outcome.err == "round 1 of 2\nround 2 of 2\n"
    assert "decode after 16" in outcome.out
    assert "prefill" not in outcome.out
    assert "2 rounds; 64 tokens decoded; cold start: new process to first token" in outcome.out


def test_missing_peer_is_said_before_anything_is_measured(
    measured: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "find_spec", lambda _: None)
    outcome = measured("--vs", "openvino")
    assert outcome.status == 1
    assert outcome.error.endswith("Install it: pip install openvino-genai")


def test_llama_cpp_is_measured_on_the_file_and_on_its_best_form(measured: Command) -> None:
    pytest.importorskip("llama_cpp")
    outcome = measured("--vs", "llama.cpp", "--only", "rows", "--rows", "2", "-n", 1, "--json")
    record = outcome.json
    names = [peer["name"] for peer in record["peers"]]
    assert names[0] == "llama.cpp"
    assert set(record["results"]["rows_2_tokens_per_s"]) == {"tokenglass", *names}
    if len(names) == 1:  # its quantiser refuses this tiny file
        assert "cannot make a Q4_0" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-n", "0"), "rounds must be a whole number from 1"),
        (("--vs", "vllm"), "no engine is called 'vllm'"),
        (("--round", "3"), "there is no option --round. Did you mean --rounds?"),
        (("--only", "speed"), "--only takes prefill, decode, rows, cold, not 'speed'"),
        (("--vs", ",,"), "no engine is called ''"),
        (("--vs", ""), "no engine is called ''"),
        (("--only", ","), "--only takes prefill, decode, rows, cold, not ''"),
        (("--prefill", "1,x"), "must be whole numbers with commas"),
        (("--prefill", "0"), "prefill must be a whole number from 1"),
        (("--rows", "33"), "rows must be a whole number from 1 to 32"),
    ],
)
def test_mistake_is_one_line_and_status_2(
    tokenglass_: Command, arguments: tuple[str, ...], words: str
) -> None:
    outcome = tokenglass_("bench", *arguments)
    assert outcome.status == 2
    assert words in outcome.error


def test_a_short_window_is_measured_with_what_fits(tokenglass_: Command, tiny_model_path: Path) -> None:
    outcome = tokenglass_(
        "bench", "-m", tiny_model_path, "--threads", 1, "-n", 1, "--only", "prefill,decode", "--json"
    )
    assert outcome.status == 0
    assert json.loads(outcome.out)["plan"]["prefills"] == [128, 511]


@pytest.mark.parametrize(
    ("part", "value"), [("decode", "0,1000000"), ("prefill", "128,512"), ("rows", "2,32")], ids=str
)
def test_a_length_that_was_asked_for_is_never_left_out(
    part: str, value: str, tokenglass_: Command, tiny_model_path: Path
) -> None:
    outcome = tokenglass_("bench", "-m", tiny_model_path, "-n", 1, "--only", part, f"--{part}", value)
    largest = value.split(",")[1]
    assert (outcome.status, outcome.out) == (2, "")
    assert f"{part} of {largest} is more than the context window of 512 tokens holds" in outcome.error


def record(**changes: Any) -> dict[str, Any]:
    results = {"decode_0_tokens_per_s": {"tokenglass": [100.0, 101.0]}}
    machine = {"cpu": "A", "cores": 2, "system": "x", "num_threads": 2, "isa": "avx2"}
    return {"machine": machine, "model": "m", "commit": "c1", "peers": [], "results": results, **changes}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    before.write_text(json.dumps(record()))
    after.write_text(
        json.dumps(record(commit="c2", results={"decode_0_tokens_per_s": {"tokenglass": [150.0, 160.0]}}))
    )
    return before, after


def test_two_results_are_compared(tokenglass_: Command, files: tuple[Path, Path]) -> None:
    outcome = tokenglass_("bench", "compare", *files)
    assert outcome.status == 0
    assert "1.54x   better" in outcome.out
    assert "commits c1 and c2" in outcome.out
    assert tokenglass_("bench", "compare", *files, "--lang", "zh").out.count("变好") == 1
    (row,) = json.loads(tokenglass_("bench", "compare", *files, "--json").out)
    assert row["verdict"] == "better"


def test_results_of_two_models_are_compared_only_by_force(
    tokenglass_: Command, files: tuple[Path, Path]
) -> None:
    files[1].write_text(json.dumps(record(model="other")))
    refused = tokenglass_("bench", "compare", *files)
    assert refused.status == 2
    assert "not of one kind: model: m and other. Add --force" in refused.error
    forced = tokenglass_("bench", "compare", *files, "--force")
    assert forced.status == 0
    assert forced.err == "not of one kind: model: m and other\n"
