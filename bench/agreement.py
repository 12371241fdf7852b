"""How often the default mode and llama.cpp have the exact mode's best token, on the same 2,000 positions.

    python bench/agreement.py MODEL...                # one line of JSON each, appended to bench/results
    python bench/agreement.py --write-docs MODEL...   # and rewrites the table of docs/*/quality.md

The claim: no less often than llama.cpp, the better one of flash attention on and off. Positions where one
engine agrees and the other does not are counted too: by chance alone they differ by about the root of their
sum. Texts, windows and engines are those of `quality.py`. Needs the extra [peers].
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from quality import ROOT, THEIRS, WINDOW, Compute, beginning, cut, ours, read_text, rewrite, sources, theirs
from tokenglass.bench.machine import commit, describe_machine
from tokenglass.engine import Engine, load
from tokenglass.hub import resolve

RESULTS = Path(__file__).parent / "results" / "agreement.jsonl"
POSITIONS = 2000
TEXT_BYTES = 25_000  # of each language
HEADS = {
    "en": ("model", "tokenglass", "llama.cpp", "only tokenglass agrees", "only llama.cpp agrees"),
    "zh": ("模型", "tokenglass", "llama.cpp", "只有 tokenglass 一致", "只有 llama.cpp 一致"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="best tokens that are the exact mode's")
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--text", action="append", default=[], metavar="LANGUAGE=FILE")
    parser.add_argument("--positions", type=int, default=POSITIONS)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args()
    records = [measured(model, options) for model in options.models]
    with RESULTS.open("a", encoding="utf-8") as results:
        results.writelines(json.dumps(record) + "\n" for record in records)
    print(table(records, "en"))
    if options.write_docs:
        for language in HEADS:
            rewrite(ROOT / "docs" / language / "quality.md", table(records, language), "agreement")


def measured(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """One model's counts of positions; `llama.cpp` is the better one of its two ways."""
    model, threads = resolve(name), options.threads
    exact = load(model, activations="f32", kv="f32", context_length=WINDOW, num_threads=threads)
    cores = exact.model.cpu.num_threads
    arms: dict[str, Compute] = {"tokenglass": ours(load(model, context_length=WINDOW, num_threads=threads))}
    for arm, flash in zip(THEIRS, (False, True), strict=True):
        arms[arm] = theirs(model, flash=flash, num_threads=cores)
    same: dict[str, list[np.bool_]] = {arm: [] for arm in arms}
    for ids in windows(exact, options):
        print(f"{model.name}: {len(same[THEIRS[0]])} of {options.positions}", file=sys.stderr)
        best = ours(exact)(ids).argmax(1)
        for arm, compute in arms.items():
            same[arm] += list(compute(ids).argmax(1) == best)
    found = {arm: np.array(agrees[: options.positions]) for arm, agrees in same.items()}
    mine, peer = found["tokenglass"], max((found[arm] for arm in THEIRS), key=np.sum)
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": describe_machine(),
        "model": model.name,
        "positions": len(mine),
        "same": {arm: int(agrees.sum()) for arm, agrees in found.items()},
        "only_tokenglass": int((mine & ~peer).sum()),
        "only_llama_cpp": int((peer & ~mine).sum()),
    }


def windows(engine: Engine, options: argparse.Namespace) -> Iterator[list[int]]:
    """Windows of ids of every text in turn, until they have the positions asked for."""
    texts = [beginning(read_text(files), TEXT_BYTES) for _, files in sources(options)]
    number = 0
    for ids in filter(None, chain(*zip_longest(*(cut(engine, text) for text in texts)))):
        yield ids
        number += len(ids)
        if number >= options.positions:
            return
    sys.exit(f"The texts have only {number} positions")


def table(records: list[dict[str, Any]], language: str) -> str:
    lines = ["| " + " | ".join(HEADS[language]) + " |", "|---|---|---|---|---|"]
    for record in records:
        number, same = record["positions"], record["same"]
        peer = max(same[arm] for arm in THEIRS)
        lines.append(
            f"| {record['model']} | {same['tokenglass'] / number:.2%} | {peer / number:.2%} "
            f"| {record['only_tokenglass']} | {record['only_llama_cpp']} |"
        )
    number, machine = records[0]["positions"], records[0]["machine"]["cpu"]
    where = f"{machine}; commit {records[0]['commit']}, {records[0]['time'][:10]}."
    if language == "zh":
        where = f"{machine}；提交 {records[0]['commit']}，{records[0]['time'][:10]}。"
        return "\n".join([*lines, "", f"每个模型 {number:,} 个位置，一半英文、一半中文。{where}"])
    return "\n".join([*lines, "", f"{number:,} positions of each model, half English, half Chinese. {where}"])


if __name__ == "__main__":
    main()
