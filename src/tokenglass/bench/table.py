"""Results as tables: for a terminal, and as the Markdown of README.md. Medians, never bests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

# metric: (label, unit, one unit in the record's own unit)
METRICS: dict[str, tuple[str, str, float]] = {
    "prefill_512_tokens_per_s": ("prefill 512", "tokens/s", 1),
    "prefill_128_tokens_per_s": ("prefill 128", "tokens/s", 1),
    "decode_tokens_per_s": ("decode", "tokens/s", 1),
    "decode_bytes_per_s": ("weights read", "GB/s", 1e9),
    "limit_bytes_per_s": ("memory's limit", "GB/s", 1e9),
    "share_of_limit": ("share of the limit", "%", 0.01),
    "python_share": ("Python in a step", "%", 0.01),
    "cold_start_s": ("cold start", "s", 1),
    "memory_bytes": ("peak memory", "MB", 1e6),
}


def text_table(record: dict[str, Any]) -> str:
    """min, median and max of every metric for each engine; beside a peer the ratio of the medians, and the
    median of the rounds' own ratios (two engines in one round met the same weather).
    """
    peers = [record["peer"]["name"]] if record.get("peer") else []
    names = ["tokenglass", *peers]
    rows = [
        ["", "", *(cell for name in names for cell in ("", name, ""))] + ["", ""] * len(peers),
        ["", "", *["min", "median", "max"] * len(names)] + ["ratio", "of rounds"] * len(peers),
    ]
    for metric, label, unit, scale in shown(record):
        values = record["results"][metric]
        cells = [label, unit]
        for name in names:
            scaled = sorted(value / scale for value in values.get(name, []))
            stats = (scaled[0], median(scaled), scaled[-1]) if scaled else ()
            cells += [number(value) for value in stats] or ["", "", ""]
        for peer in peers:
            cells += [f"{ratio:.2f}x" for ratio in ratios(values, peer)]
        rows.append(cells)
    return aligned(rows)


def markdown_table(record: dict[str, Any], words: dict[str, str]) -> str:
    """The medians as a Markdown table. `words`: label -> label in the language of the page."""
    peer = record["peer"]["name"]
    lines = [f"| | tokenglass | {peer} | {words.get('ratio', 'ratio')} |", "|---|---|---|---|"]
    for metric, label, unit, scale in shown(record):
        values = record["results"][metric]
        ours, theirs = (
            f"{number(median(values[name]) / scale)} {unit}" if name in values else ""
            for name in ("tokenglass", peer)
        )
        ratio = f"{next(iter(ratios(values, peer))):.2f}x" if theirs else ""
        lines.append(f"| {words.get(label, label)} | {ours} | {theirs} | {ratio} |")
    return "\n".join(lines)


def shown(record: dict[str, Any]) -> Iterator[tuple[str, str, str, float]]:
    """The metrics this record has, in the table's order: (metric, label, unit, scale)."""
    for metric, row in METRICS.items():
        if metric in record["results"]:
            yield metric, *row


def ratios(values: dict[str, list[float]], peer: str) -> tuple[float, ...]:
    """(ratio of the medians, median of the rounds' ratios), ours over theirs; () if only one has values."""
    ours, theirs = values.get("tokenglass"), values.get(peer)
    if not ours or not theirs:
        return ()
    return median(ours) / median(theirs), median(a / b for a, b in zip(ours, theirs, strict=True))


def number(value: float) -> str:
    """Three digits that matter: 1234, 301, 29.1, 0.52."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Columns of equal width; the first is on the left, numbers on the right."""
    columns = max(map(len, rows))
    filled = [[*row, *[""] * (columns - len(row))] for row in rows]
    widths = [max(len(row[i]) for row in filled) for i in range(columns)]
    lines = (
        "  ".join(
            f"{cell:<{width}}" if i < 2 else f"{cell:>{width}}"
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in filled
    )
    return "\n".join(line.rstrip() for line in lines)
