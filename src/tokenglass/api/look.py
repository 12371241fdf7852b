"""How results look: in plain text, and as small pieces of HTML in a notebook.

No script, no style sheet, nothing fetched. Text of a model or a user comes in through `printable` (control
characters and marks that turn the reading direction are escapes) and, in HTML, `shown`: it can be read and
never acts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

HUES = (205, 35, 140, 280, 0)  # neighbours differ in colour; in a score they differ in strength
CELL = "padding:0 .6em;text-align:right"
TEXT = "text-align:left"


def printable(text: str) -> str:
    """`text` with what does not print as escapes: printable("a\\n\\u202eb") == "a\\\\n\\\\u202eb"."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def shown(text: str) -> str:
    """`text` as harmless HTML: shown("<b>\\n") == "&lt;b&gt;\\\\n"."""
    return escape(printable(text), quote=True)


def tokens(
    pieces: Sequence[tuple[int, str]], surprisal_bits: Sequence[float] | None = None, note: str = ""
) -> str:
    """The pieces (id, text) side by side; with surprisals, the stronger the colour the less expected."""
    spans = []
    for i, (token_id, text) in enumerate(pieces):
        bits = None if surprisal_bits is None else surprisal_bits[i]
        hue, strength = (HUES[i % len(HUES)], 0.25) if bits is None else (0, heat(bits))
        title = f"id {token_id}" if bits is None or math.isnan(bits) else f"id {token_id}, {bits:.2f} bits"
        spans.append(
            f'<span title="{title}" style="background:hsla({hue},80%,50%,{strength:.2f});'
            f'border-radius:3px;margin:1px;padding:1px 2px;white-space:pre-wrap">{shown(text)}</span>'
        )
    words = f"{len(pieces)} tokens" + (f", {note}" if note else "")
    return f'<div style="line-height:1.9;font-family:monospace">{"".join(spans)}</div><small>{words}</small>'


def heat(bits: float) -> float:
    """Strength of a colour, 0 … 0.7: 0 at 0 bits, full at 12."""
    return 0.0 if math.isnan(bits) else min(max(bits, 0.0), 12.0) / 12.0 * 0.7


def distribution(summary: str, rows: Sequence[tuple[int, int, str, float, float]], rest: float) -> str:
    """A table of (rank, id, text, logit, probability) with a bar for each probability."""
    heads = "".join(f'<th style="{CELL}">{name}</th>' for name in ("rank", "id", "logit", "p"))
    lines = [
        "<tr>"
        + "".join(
            f'<td style="{CELL}">{value}</td>' for value in (rank, token_id, f"{logit:.3f}", f"{p:.4f}")
        )
        + f'<td style="{TEXT}"><code>{shown(text)}</code></td><td style="{TEXT}">{bar(p)}</td></tr>'
        for rank, token_id, text, logit, p in rows
    ]
    last = f'<tr><td colspan="3"></td><td style="{CELL}">{rest:.4f}</td><td colspan="2">all others</td></tr>'
    return (
        f"<small>{escape(summary)}</small><table><tr>{heads}<th>token</th><th></th></tr>"
        f"{''.join(lines)}{last}</table>"
    )


def bar(share: float) -> str:
    """A bar `share` of 12 em long."""
    return (
        f'<span style="display:inline-block;height:.8em;width:{12 * share:.2f}em;background:#4a90d9"></span>'
    )


def answer(text: str, note: str) -> str:
    """A whole answer: its line breaks are kept, every line is shown as `shown` does."""
    lines = "<br>".join(shown(line) for line in text.split("\n"))
    return f'<div style="white-space:pre-wrap">{lines}</div><small>{escape(note)}</small>'
