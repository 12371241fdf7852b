"""Tables from a result with known numbers."""

from __future__ import annotations

from typing import Any

from tokenglass.bench.table import markdown_table, number, text_table


def test_terminal_table_shows_spread_and_both_ratios(record: dict[str, Any]) -> None:
    lines = text_table(record).splitlines()
    assert lines[1].split() == ["min", "median", "max", "min", "median", "max", "ratio", "of", "rounds"]
    decode = next(line for line in lines if line.startswith("decode"))
    assert decode.split() == [
        "decode",
        "tokens/s",
        "150",
        "300",
        "301",
        "50.0",
        "100",
        "120",
        "3.00x",
        "3.00x",
    ]
    prefill = next(line for line in lines if line.startswith("prefill 512"))
    assert prefill.split()[-2:] == ["6.67x", "6.45x"]  # 2000 / 300; the median of 5, 8 and 6.45


def test_metrics_of_one_engine_have_no_ratio(record: dict[str, Any]) -> None:
    share = next(line for line in text_table(record).splitlines() if line.startswith("share"))
    assert share.split() == ["share", "of", "the", "limit", "%", "50.0", "90.0", "91.0"]


def test_table_without_a_peer_has_our_columns_only(record: dict[str, Any]) -> None:
    record["peer"] = None
    for values in record["results"].values():
        values.pop("llama.cpp", None)
    assert "llama" not in text_table(record)
    assert "ratio" not in text_table(record)


def test_markdown_has_medians_in_either_language(record: dict[str, Any]) -> None:
    assert markdown_table(record, {"decode": "解码", "ratio": "比值"}).splitlines() == [
        "| | tokenglass | llama.cpp | 比值 |",
        "|---|---|---|---|",
        "| prefill 512 | 2000 tokens/s | 300 tokens/s | 6.67x |",
        "| 解码 | 300 tokens/s | 100 tokens/s | 3.00x |",
        "| share of the limit | 90.0 % |  |  |",
        "| peak memory | 172 MB | 207 MB | 0.83x |",
    ]


def test_numbers_have_three_digits_that_matter() -> None:
    assert [number(value) for value in (1234.4, 301.2, 29.14, 0.523)] == ["1234", "301", "29.1", "0.52"]
