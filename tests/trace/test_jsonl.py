"""A trace written, read back and run again gives the same tokens; a broken file is refused with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tokenglass.engine import Request, load
from tokenglass.engine.listen import events
from tokenglass.errors import UsageError
from tokenglass.sampling import Sampling
from tokenglass.trace import TokenEvent, read_trace, write_event, write_header


def traced(model: Path, sampling: Sampling, num_tokens: int = 12) -> list[TokenEvent]:
    engine = load(model, num_threads=1)
    request = Request(
        prompt_ids=[5, 90, 7], sampling=sampling, max_tokens=num_tokens, ignore_eos=True, trace_top=4
    )
    return list(events(engine, request, engine.stream(request)))


def store(path: Path, sampling: Sampling, recorded: list[TokenEvent]) -> None:
    with path.open("w", encoding="utf-8") as file:
        write_header(file, {"seed": sampling.seed, "prompt_ids": [5, 90, 7]})
        for event in recorded:
            write_event(file, event)


@pytest.mark.parametrize("sampling", [Sampling(seed=3), Sampling(seed=3, temperature=1.3, top_p=0.9)])
def test_a_stored_trace_is_read_back_and_repeats(
    tmp_path: Path, tiny_model_path: Path, sampling: Sampling
) -> None:
    recorded = traced(tiny_model_path, sampling)
    store(tmp_path / "t.jsonl", sampling, recorded)
    header, read = read_trace(tmp_path / "t.jsonl")
    assert read == recorded
    again = traced(tiny_model_path, Sampling(**{**header_settings(sampling), "seed": header["seed"]}))
    assert [e.decision for e in again] == [e.decision for e in read]


def header_settings(sampling: Sampling) -> dict[str, float]:
    return {"temperature": sampling.temperature, "top_p": sampling.top_p}


def test_tracing_changes_no_token(tiny_model_path: Path) -> None:
    engine = load(tiny_model_path, num_threads=1)
    for seed in range(5):
        plain = Request(
            prompt_ids=[9, 9], sampling=Sampling(temperature=1, seed=seed), max_tokens=8, ignore_eos=True
        )
        told = Request(prompt_ids=[9, 9], sampling=plain.sampling, max_tokens=8, ignore_eos=True, trace_top=3)
        assert list(engine.stream(plain)) == list(engine.stream(told))


def test_events_count_positions_and_bytes(tiny_model_path: Path) -> None:
    recorded = traced(tiny_model_path, Sampling())
    assert [e.index for e in recorded] == list(range(12))
    assert [e.position for e in recorded] == list(range(3, 15))
    assert [e.phase for e in recorded] == ["prefill"] + ["decode"] * 11
    assert recorded[-1].finish_reason == "length"
    assert all(e.step_s > 0 for e in recorded)
    assert recorded[4].kv_bytes == 7 * recorded[0].kv_bytes // 3
    assert [len(e.top_bytes) for e in recorded] == [len(e.decision.top) for e in recorded]
    for e in recorded:
        chosen = [candidate.token_id for candidate in e.decision.top].index(e.decision.token_id)
        assert e.top_bytes[chosen] == e.token_bytes
    vocabulary = load(tiny_model_path).tokenizer.vocabulary
    told = [e.token_bytes for e in recorded if not vocabulary.is_control(e.decision.token_id)]
    joined = b"".join(told).decode("utf-8", "replace")
    assert "".join(e.text for e in recorded) == joined


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no trace"),
        ("{}\n", "no trace"),
        ('{"tokenglass_trace":2}\n', "no trace"),
        ('{"tokenglass_trace":1}\n{"index":0', "line 2"),
        ('{"tokenglass_trace":1}\n{"index":0}\n', "line 2"),
        ('{"tokenglass_trace":1}\n[1]\n', "line 2"),
        ("\x00\x01", "line 1"),
    ],
)
def test_a_broken_trace_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=said):
        read_trace(path)
    with pytest.raises(UsageError, match="No such file"):
        read_trace(tmp_path / "none.jsonl")


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("event", "step_s", "\x1b[2J"),
        ("event", "step_s", float("nan")),
        ("event", "index", True),
        ("event", "kv_bytes", 10**400),
        ("event", "token_bytes", "!"),
        ("event", "top_bytes", []),
        ("event", "finish_reason", 3),
        ("event", "novel", 1),
        ("decision", "token_id", 1.5),
        ("decision", "entropy", float("inf")),
        ("decision", "stages", [{"name": 1, "setting": 1.0, "survivors": 1, "mass": 1.0}]),
        ("decision", "top", 7),
    ],
)
def test_a_value_that_no_run_writes_is_refused(
    tmp_path: Path, tiny_model_path: Path, part: str, name: str, value: object
) -> None:
    path = tmp_path / "t.jsonl"
    store(path, Sampling(seed=1), traced(tiny_model_path, Sampling(seed=1), num_tokens=2))
    *first, last = path.read_text(encoding="utf-8").splitlines()
    record = json.loads(last)
    (record if part == "event" else record["decision"])[name] = value
    if name == "top_bytes":
        record[name] = ["AA=="]
    path.write_text("\n".join([*first, json.dumps(record)]), encoding="utf-8")
    with pytest.raises(UsageError, match="line 3: not a token event"):
        read_trace(path)


def test_a_line_that_never_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenglass.trace.jsonl.MAX_LINE", 1000)
    with pytest.raises(UsageError, match="line 1: longer than any"):
        read_trace("/dev/zero")


def test_json_that_never_ends_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(UsageError, match="line 1"):
        read_trace(path)
