"""Curves as SVG: a few series over one axis, without anything from elsewhere; dashes tell them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2
from xml.sax.saxutils import escape

LEFT, TOP, WIDTH, HEIGHT = 64, 44, 540, 250
STYLES = (("#1d4ed8", ""), ("#c2410c", "7 4"), ("#15803d", "2 3"), ("#7e22ce", "9 3 2 3"))

Points = Sequence[tuple[float, float]]


def svg_curves(series: Mapping[str, Points], *, title: str, x_name: str, y_name: str, doubling: bool) -> str:
    """One picture; x in equal steps, or (`doubling`) one step for each factor of two; y from 0."""
    xs = sorted({x for points in series.values() for x, _ in points})
    most = max((y for points in series.values() for _, y in points), default=1.0) or 1.0
    low, high = _place(xs[0], doubling), _place(xs[-1], doubling)

    def at(x: float, y: float) -> tuple[float, float]:
        share = (_place(x, doubling) - low) / ((high - low) or 1)
        return LEFT + share * WIDTH, TOP + HEIGHT * (1 - y / most)

    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 380" role="img" '
        'font-family="sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        '<rect width="640" height="380" fill="#fff"/>',
        f'<text x="{LEFT}" y="24" font-size="15">{escape(title)}</text>',
        f'<text x="{LEFT}" y="{TOP - 6}" font-size="11" fill="#555">{escape(y_name)}</text>',
    ]
    for i in range(5):
        y = at(xs[0], most * i / 4)[1]
        lines.append(f'<path d="M{LEFT} {y:.1f}h{WIDTH}" stroke="#ccc"/>')
        lines.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{most * i / 4:.3g}</text>')
    for x in xs:
        lines.append(f'<text x="{at(x, 0)[0]:.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{x:g}</text>')
    lines.append(
        f'<text x="{LEFT + WIDTH // 2}" y="{TOP + HEIGHT + 36}" text-anchor="middle">{escape(x_name)}</text>'
    )
    for i, (name, points) in enumerate(series.items()):
        colour, dashes = STYLES[i % len(STYLES)]
        style = f'stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"'
        places = [at(x, y) for x, y in sorted(points)]
        lines.append(
            f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}" fill="none" {style}/>'
        )
        lines += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        x = LEFT + 180 * i
        lines.append(f'<path d="M{x} 362h28" {style}/>')
        lines.append(f'<text x="{x + 34}" y="366" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*lines, "</svg>", ""])


def _place(x: float, doubling: bool) -> float:
    return log2(max(x, 1.0)) if doubling else x
