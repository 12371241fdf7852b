"""Two results of `tokenglass bench --json`: what changed, and what is only noise."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

from tokenglass.bench.table import LESS_IS_BETTER, OURS, aligned, in_order, kind_of, label_of, spread
from tokenglass.errors import UsageError

SAME = ("cpu", "cores", "system", "num_threads", "isa")  # of the machine


def read_record(path: Path) -> dict[str, Any]:
    """The last line of a file of results. UsageError: it cannot be read, or is no such result."""
    try:
        record = json.loads(path.read_text(encoding="utf-8").strip().splitlines()[-1])
        if not {"machine", "model", "commit", "results", "peers"} <= record.keys():
            raise ValueError
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, IndexError, AttributeError):
        raise UsageError(
            f"{path} holds no result of this version", remedy="Make one: tokenglass bench --json > FILE"
        ) from None
    return dict(record)


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Why two results cannot be compared as they are: `cpu: AMD EPYC and Apple M2`; nothing: they can."""
    pairs = [("model", before["model"], after["model"])]
    pairs += [(name, before["machine"].get(name), after["machine"].get(name)) for name in SAME]
    return [f"{name}: {one} and {other}" for name, one, other in pairs if one != other]


def compared(before: dict[str, Any], after: dict[str, Any]) -> list[dict[str, Any]]:
    """One row for each metric of ours that both have: medians, their ratio, and a verdict.

    `within noise`: the ranges from min to max overlap, so rounds of the one are like rounds of the other.
    """
    rows = []
    for metric in in_order(before["results"].keys() & after["results"].keys()):
        old, new = (record["results"][metric].get(OURS) for record in (before, after))
        if not old or not new:
            continue
        is_noise = min(old) <= max(new) and min(new) <= max(old)
        is_better = (median(new) > median(old)) != (kind_of(metric)[0] in LESS_IS_BETTER)
        rows.append(
            {
                "metric": metric,
                "before": median(old),
                "after": median(new),
                "ratio": median(new) / median(old) if median(old) else None,
                "verdict": "within noise" if is_noise else "better" if is_better else "worse",
            }
        )
    return rows


def comparison_table(before: dict[str, Any], after: dict[str, Any], words: dict[str, str]) -> str:
    """The rows of `compared` for a terminal. `words`: our verdicts and heads -> the reader's."""
    lines = [["", "", *(words.get(head, head) for head in ("before", "after", "ratio", "verdict"))]]
    for row in compared(before, after):
        label, unit, scale = label_of(row["metric"])
        cells = [spread(record["results"][row["metric"]][OURS], scale) for record in (before, after)]
        factor = "" if row["ratio"] is None else f"{row['ratio']:.2f}x"
        lines.append([label, unit, *cells, factor, words.get(row["verdict"], row["verdict"])])
    return aligned(lines)
