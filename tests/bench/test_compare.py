"""Two results side by side: what is a change, what is noise, and what cannot be compared."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tokenglass.bench.compare import compared, comparison_table, differences, read_record
from tokenglass.errors import UsageError


@pytest.fixture
def after(record: dict[str, Any]) -> dict[str, Any]:
    later = deepcopy(record)
    later["commit"] = "ba9876543210"
    later["results"]["decode_0_tokens_per_s"]["tokenglass"] = [310.0, 330.0, 320.0]
    later["results"]["memory_bytes"]["tokenglass"] = [180_000_000, 181_000_000]
    later["results"]["prefill_512_tokens_per_s"]["tokenglass"] = [900.0, 950.0, 990.0]
    return later


def test_only_ranges_that_do_not_meet_are_a_change(record: dict[str, Any], after: dict[str, Any]) -> None:
    verdicts = {row["metric"]: (row["verdict"], row["ratio"]) for row in compared(record, after)}
    assert verdicts["decode_0_tokens_per_s"] == ("better", 320 / 300)
    assert verdicts["memory_bytes"][0] == "worse"  # less is better
    assert verdicts["prefill_512_tokens_per_s"] == ("worse", 950 / 2000)
    assert verdicts["decode_0_share"] == ("within noise", 1.0)


def test_metrics_that_one_result_lacks_are_left_out(record: dict[str, Any], after: dict[str, Any]) -> None:
    del after["results"]["memory_bytes"]
    assert "memory_bytes" not in [row["metric"] for row in compared(record, after)]


def test_table_names_both_and_the_verdict(record: dict[str, Any], after: dict[str, Any]) -> None:
    lines = comparison_table(record, after, {"better": "变快"}).splitlines()
    assert lines[0].split() == ["before", "after", "ratio", "verdict"]
    decode = next(line for line in lines if line.startswith("decode after 0  "))
    assert decode.split()[4:] == ["300", "(150-301)", "320", "(310-330)", "1.07x", "变快"]


def test_another_machine_or_model_is_named(record: dict[str, Any], after: dict[str, Any]) -> None:
    assert differences(record, after) == []
    after["machine"]["cpu"] = "Another"
    after["model"] = "other.gguf"
    assert differences(record, after) == ["model: tiny.gguf and other.gguf", "cpu: A processor and Another"]


def test_last_line_of_a_file_is_read(record: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text("{}\n" + json.dumps(record) + "\n")
    assert read_record(path) == record


@pytest.mark.parametrize("text", ["", "not json", "[1]", "{}"])
def test_file_without_a_result_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"results\.json holds no result"):
        read_record(path)
    with pytest.raises(UsageError, match="cannot read"):
        read_record(tmp_path / "missing")
