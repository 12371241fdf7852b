"""The same seed gives the same text in any process, whatever is watched; values out of range are one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command, child, finish

DRAWN = ("--raw", "--max-tokens", 40, "--seed", 12, "--temperature", 1.3, "--top-k", 200, "--top-p", 0.97)
MORE = ("--repetition-penalty", 1.1, "--presence-penalty", 0.3, "--typical-p", 0.95, "--min-p", 0.001)


def test_processes_and_trace_levels_agree_and_the_trace_replays(
    tiny_model_path: Path, tmp_path: Path
) -> None:
    path = tmp_path / "t.jsonl"
    run = ("run", "hello world", "-m", tiny_model_path, *DRAWN, *MORE)
    ways: list[tuple[object, ...]] = [
        ("--threads", 1),
        ("--threads", 2, "--trace"),
        ("--threads", 1, "--trace-file", path, "--trace-top", 0),
        ("--threads", 2, "--trace-file", path, "--trace-top", 300),
        ("--threads", 1, "--no-cache"),
    ]
    outcomes = [finish(child(*run, *way, env={"PYTHONHASHSEED": str(i)})) for i, way in enumerate(ways)]
    assert [outcome.status for outcome in outcomes] == [0] * len(ways)
    assert len({outcome.out for outcome in outcomes}) == 1
    assert outcomes[0].out != finish(child(*run, "--seed", 13)).out
    replayed = finish(child("replay", path, "-m", tiny_model_path, "--json"))
    assert replayed.json == {
        "equal": True, "equal_tokens": 40, "stored_tokens": 40, "first_difference": None,
    }  # fmt: skip
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        decision = json.loads(line)["decision"]
        for kind in ("p", "raw_p"):
            total = sum(candidate[kind] for candidate in decision["top"]) + decision[f"rest_{kind}"]
            assert total == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("--max-tokens", value) for value in ("1.5", "5x", "-1", "-2", "null", "", 10**18)),  # B24
        *(("-n", value) for value in (0, 1_000_000)),  # B33
        *(("--trace-top", value) for value in (-1, 10**9)),
        ("--stop", ""),  # B13
        *(("--logit-bias", value) for value in ("-1=1", "abc=1", "5=1e9", "5=nan")),  # B28
    ],
)
def test_a_value_out_of_range_is_one_line_and_status_2(
    tokenglass_: Command, tiny_model_path: Path, option: str, value: object
) -> None:
    more = ("--trace",) if option == "--trace-top" else ()
    outcome = tokenglass_("run", "hello", "--raw", "-m", tiny_model_path, *more, f"{option}={value}")
    assert outcome.status == 2
    name = {"-n": "answers"}.get(option, option.lstrip("-"))
    assert name in outcome.error.replace("_", "-")
