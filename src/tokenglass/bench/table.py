"""Results as tables: for a terminal, and as the Markdown of a page. Medians, never bests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

OURS = "tokenglass"
# metric, its numbers left out: (label, unit, one unit in the record's own unit); in the table's order
LABELS: dict[str, tuple[str, str, float]] = {
    "read_{n}_bytes_per_s": ("memory, {n} thread", "GB/s", 1e9),
    "read_bytes_per_s": ("memory, all threads", "GB/s", 1e9),
    "int8_per_s": ("int8 peak", "G multiply-adds/s", 1e9),
    "prefill_{n}_tokens_per_s": ("prefill {n}", "tokens/s", 1),
    "prefill_{n}_share": ("prefill {n}, of int8 peak", "%", 0.01),
    "prefill_{n}_products_share": ("prefill {n}, products of peak", "%", 0.01),
    "decode_{n}_tokens_per_s": ("decode after {n}", "tokens/s", 1),
    "decode_{n}_bytes_per_s": ("decode after {n}, read", "GB/s", 1e9),
    "decode_{n}_share": ("decode after {n}, of memory", "%", 0.01),
    "decode_{n}_products_share": ("decode after {n}, products", "%", 0.01),
    "decode_{n}_python_share": ("decode after {n}, Python", "%", 0.01),
    "rows_{n}_tokens_per_s": ("{n} at once", "tokens/s", 1),
    "rows_{n}_step_s": ("{n} at once, a step", "ms", 1e-3),
    "cold_start_s": ("cold start", "s", 1),
    "memory_bytes": ("peak memory", "MB", 1e6),
}
LESS_IS_BETTER = ("rows_{n}_step_s", "cold_start_s", "memory_bytes", "decode_{n}_python_share")


def kind_of(metric: str) -> tuple[str, str]:
    """`prefill_512_share` as (`prefill_{n}_share`, `512`); the number is empty where there is none."""
    number = re.search(r"\d+(?=_)", metric.replace("int8", "int"))
    return (metric.replace(f"_{number[0]}_", "_{n}_", 1), number[0]) if number else (metric, "")


def label_of(metric: str) -> tuple[str, str, float]:
    """(label, unit, scale) of a metric: `prefill 512`, `tokens/s`, 1."""
    kind, number = kind_of(metric)
    label, unit, scale = LABELS[kind]
    return label.replace("{n}", number), unit, scale


def in_order(metrics: Iterable[str]) -> list[str]:
    """The metrics by part, then by number, then as in LABELS."""
    kinds = list(LABELS)

    def place(metric: str) -> tuple[int, int, int]:
        kind, number = kind_of(metric)
        part = next(i for i, other in enumerate(kinds) if other.split("_")[0] == kind.split("_")[0])
        return part, int(number or 1 << 30), kinds.index(kind)

    return sorted(metrics, key=place)


def engines_of(record: dict[str, Any]) -> list[str]:
    """Ours first, then the peers as they were asked for."""
    return [OURS, *(peer["name"] for peer in record["peers"])]


def text_table(record: dict[str, Any]) -> str:
    """median (min to max) of every metric for each engine; beside a peer the ratio of the medians."""
    names = engines_of(record)
    rows = [["", "", OURS, *(cell for name in names[1:] for cell in (name, "ratio"))]]
    for metric in in_order(record["results"]):
        label, unit, scale = label_of(metric)
        values = record["results"][metric]
        cells = [label, unit, spread(values.get(OURS, []), scale)]
        for name in names[1:]:
            cells += [spread(values.get(name, []), scale), ratio(values, name)]
        rows.append(cells)
    return aligned(rows)


def markdown_table(
    record: dict[str, Any], words: dict[str, str], metrics: Sequence[str] | None = None
) -> str:
    """The medians as a Markdown table, of these metrics or of all. `words`: our labels -> the page's."""
    names = engines_of(record)
    head = ["", OURS, *(cell for name in names[1:] for cell in (name, words.get("ratio", "ratio")))]
    lines = [f"| {' | '.join(head)} |".replace("|  |", "| |"), "|---" * len(head) + "|"]
    for metric in in_order(record["results"]):
        if metrics is not None and metric not in metrics:
            continue
        values = record["results"][metric]
        kind, number_ = kind_of(metric)
        label, unit, scale = LABELS[kind]
        cells = [words.get(label, label).replace("{n}", number_)]
        for name in names:
            cells.append(f"{number(median(values[name]) / scale)} {unit}" if values.get(name) else "")
            if name != OURS:
                cells.append(ratio(values, name))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def spread(values: Sequence[float], scale: float) -> str:
    """`1678 (1650-1700)`."""
    if not values:
        return ""
    low, middle, high = (number(value / scale) for value in (min(values), median(values), max(values)))
    return f"{middle} ({low}-{high})" if len(values) > 1 else middle


def ratio(values: dict[str, list[float]], peer: str) -> str:
    """Our median over the peer's: `5.25x`; nothing where one has none."""
    ours, theirs = values.get(OURS), values.get(peer)
    return f"{median(ours) / median(theirs):.2f}x" if ours and theirs else ""


def number(value: float) -> str:
    """Three digits that matter: 1234, 301, 29.1, 0.52."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Columns of equal width; the first two are on the left, numbers on the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = (
        "  ".join(
            f"{cell:<{width}}" if i < 2 else f"{cell:>{width}}"
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)
