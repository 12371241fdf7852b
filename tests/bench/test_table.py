"""Tables from a result with known numbers."""

from __future__ import annotations

from typing import Any

import pytest

from tokenglass.bench.table import in_order, kind_of, label_of, markdown_table, number, text_table


def line(record: dict[str, Any], label: str) -> list[str]:
    return next(line for line in text_table(record).splitlines() if line.startswith(label)).split()


def test_terminal_table_shows_spread_and_ratio(record: dict[str, Any]) -> None:
    assert line(record, "decode after 0  ")[3:] == [
        "tokens/s", "300", "(150-301)", "100", "(50.0-120)", "3.00x",
    ]  # fmt: skip
    assert line(record, "prefill 512")[-1] == "6.67x"


def test_metrics_of_one_engine_have_no_ratio(record: dict[str, Any]) -> None:
    assert line(record, "decode after 0, of")[5:] == ["%", "90.0", "(50.0-91.0)"]


def test_table_without_a_peer_has_our_columns_only(record: dict[str, Any]) -> None:
    record["peers"] = []
    assert "llama" not in text_table(record)
    assert "ratio" not in text_table(record)


def test_rows_are_in_the_order_of_the_parts_then_of_numbers() -> None:
    metrics = ["cold_start_s", "prefill_2048_share", "prefill_128_tokens_per_s", "prefill_2048_tokens_per_s",
               "decode_0_tokens_per_s", "int8_per_s", "read_1_bytes_per_s", "read_bytes_per_s"]  # fmt: skip
    assert in_order(metrics) == [
        "read_1_bytes_per_s", "read_bytes_per_s", "int8_per_s", "prefill_128_tokens_per_s",
        "prefill_2048_tokens_per_s", "prefill_2048_share", "decode_0_tokens_per_s", "cold_start_s",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("metric", "kind", "label"),
    [
        ("prefill_512_share", ("prefill_{n}_share", "512"), "prefill 512, of int8 peak"),
        ("int8_per_s", ("int8_per_s", ""), "int8 peak"),
        ("rows_32_step_s", ("rows_{n}_step_s", "32"), "32 at once, a step"),
        ("cold_start_s", ("cold_start_s", ""), "cold start"),
    ],
)
def test_a_metric_is_a_label_and_a_number(metric: str, kind: tuple[str, str], label: str) -> None:
    assert kind_of(metric) == kind
    assert label_of(metric)[0] == label


def test_markdown_has_medians_in_either_language(record: dict[str, Any]) -> None:
    words = {"decode after {n}": "在 {n} 个之后解码", "ratio": "比值"}
    assert markdown_table(record, words).splitlines() == [
        "| | tokenglass | llama.cpp | 比值 |",
        "|---|---|---|---|",
        "| int8 peak | 400 G multiply-adds/s |  |  |",
        "| prefill 512 | 2000 tokens/s | 300 tokens/s | 6.67x |",
        "| 在 0 个之后解码 | 300 tokens/s | 100 tokens/s | 3.00x |",
        "| decode after 0, of memory | 90.0 % |  |  |",
        "| peak memory | 172 MB | 207 MB | 0.83x |",
    ]
    assert len(markdown_table(record, {}, ["memory_bytes"]).splitlines()) == 3


def test_numbers_have_three_digits_that_matter() -> None:
    assert [number(value) for value in (1234.4, 301.2, 29.14, 0.523)] == ["1234", "301", "29.1", "0.52"]
