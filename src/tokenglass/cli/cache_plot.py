"""Milliseconds for each token, without and with a cache: as letters for a terminal, as SVG for a page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 60, 12  # cells of the plot itself
NAIVE, CACHED = "#", "o"


def text_plot(naive_ms: Sequence[float], cached_ms: Sequence[float], *, caption: str) -> str:
    """A plot of plain characters: left to right the tokens, upwards the milliseconds of each.

    A cell shows the median of the tokens that fall into its column.
    """
    num_columns = min(WIDTH, len(naive_ms))
    naive, cached = _columns(naive_ms, num_columns), _columns(cached_ms, num_columns)
    top = max([*naive, *cached, 1e-9])
    cells = [[" "] * num_columns for _ in range(HEIGHT)]
    for values, mark in ((cached, CACHED), (naive, NAIVE)):
        for x, value in enumerate(values):
            cells[min(int(value / top * HEIGHT), HEIGHT - 1)][x] = mark
    lines = []
    for y in range(HEIGHT - 1, -1, -1):
        label = f"{top * (y + 1) / HEIGHT:8.1f}" if y in (HEIGHT - 1, HEIGHT // 2 - 1) else " " * 8
        lines.append(f"{label} |{''.join(cells[y])}".rstrip())
    last = str(len(naive_ms))
    lines.append(f"{0:8} +{'-' * num_columns}")
    lines.append(" " * 10 + "1" + last.rjust(num_columns - 1))
    return "\n".join([caption, *lines])


def svg_plot(
    naive_ms: Sequence[float], cached_ms: Sequence[float], *, title: str, naive: str, cached: str, axis: str
) -> str:
    """The same as one SVG file without anything from elsewhere; words and shapes, not colours alone."""
    left, top, width, height = 60, 50, 560, 270
    most, num_tokens = max([*naive_ms, *cached_ms, 1e-9]), len(naive_ms)

    def points(values: Sequence[float]) -> str:
        step = width / max(1, num_tokens - 1)
        return " ".join(
            f"{left + i * step:.1f},{top + height * (1 - value / most):.1f}" for i, value in enumerate(values)
        )

    ticks = []
    for i in range(5):
        y = top + height * (1 - i / 4)
        ticks.append(f'<path d="M{left} {y:.1f}h{width}" stroke="#ccc"/>')
        ticks.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{most * i / 4:.3g}</text>')
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 380" role="img" '
            'font-family="sans-serif" font-size="13">',
            f"<title>{escape(title)}</title>",
            '<rect width="640" height="380" fill="#fff"/>',
            f'<text x="{left}" y="24" font-size="15">{escape(title)}</text>',
            *ticks,
            f'<polyline points="{points(naive_ms)}" fill="none" stroke="#c2410c" stroke-width="2"/>',
            f'<polyline points="{points(cached_ms)}" fill="none" stroke="#1d4ed8" stroke-width="2" '
            'stroke-dasharray="6 3"/>',
            f'<text x="{left + 8}" y="{top + 14}" fill="#c2410c">— {escape(naive)}</text>',
            f'<text x="{left + 8}" y="{top + 32}" fill="#1d4ed8">- - {escape(cached)}</text>',
            f'<text x="{left}" y="340">1</text>',
            f'<text x="{left + width}" y="340" text-anchor="end">{num_tokens}</text>',
            f'<text x="{left + width // 2}" y="362" text-anchor="middle">{escape(axis)}</text>',
            "</svg>",
            "",
        ]
    )


def _columns(values: Sequence[float], num_columns: int) -> list[float]:
    ends = [round(i * len(values) / num_columns) for i in range(num_columns + 1)]
    return [median(values[start:end]) for start, end in pairwise(ends)]
