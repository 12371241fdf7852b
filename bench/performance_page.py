"""docs/en/performance.md and docs/zh/performance.md: measure, keep the result, rewrite tables and curves.

    python bench/performance_page.py qwen.gguf gemma.gguf   # some twenty minutes; also rewrites READMEs
    python bench/performance_page.py --only qwen.gguf       # these models, some minutes each; the rest stays
    python bench/performance_page.py --from-results         # only rewrite, from the last line of the results

The main run is that of the default model; further files get a smaller table each. Needs llama-cpp-python and
a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from statistics import median
from typing import Any

from tokenglass.processors import read_processors

sys.path.insert(0, str(Path(__file__).parent))  # the two scripts beside this one
import curves
import readme_table

RESULTS = Path(__file__).parent / "results" / "performance.jsonl"
MAIN = [
    "--vs", "llama.cpp", "--prefill", "128,512,2048", "--decode", "0,512,1024,2048,4096",
    "--rows", "1,2,4,8,16,32",
]  # fmt: skip
OTHERS = ["--vs", "llama.cpp", "--only", "prefill,decode,cold", "--prefill", "512", "--decode", "0"]
THREADS = ["--only", "prefill,decode", "--prefill", "512", "--decode", "0"]
WORDS: dict[str, dict[str, Any]] = {
    "en": {
        "depth": ("Decoding against depth", "tokens before it", "tokens/s"),
        "rows": ("A step against requests at once", "requests", "ms"),
        "threads": ("Speed against threads, of one thread", "threads", "times one thread"),
        "prefill": "prefill 512",
        "decode": "decode",
    },
    "zh": {
        "depth": ("解码速度与上下文深度", "之前的 token 数", "tokens/s"),
        "rows": ("一步的时间与同时的请求数", "请求数", "毫秒"),
        "threads": ("速度与线程数，以单线程为 1", "线程数", "单线程的倍数"),
        "prefill": "预填充 512",
        "decode": "解码",
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="*", help="files that get a table of their own")
    parser.add_argument("--only", action="store_true", help="only these; the rest is of the last results")
    parser.add_argument("--from-results", action="store_true", help="measure nothing, rewrite the pages")
    options = parser.parse_args()
    result: dict[str, Any] = {"others": {}}
    if options.only or options.from_results:
        result |= json.loads(RESULTS.read_text(encoding="utf-8").splitlines()[-1])
    else:
        result |= measure()
    for model in options.models:
        record = json.loads(readme_table.measured([*OTHERS, "-m", model]))
        result["others"][record["model"]] = record
    if not options.from_results:
        readme_table.keep(RESULTS, json.dumps(result))
    readme_table.rewrite_readmes(result["main"])
    for language, table in (("en", readme_table.english), ("zh", readme_table.chinese)):
        folder = readme_table.ROOT / "docs" / language
        tables = [table(record) for record in (result["main"], *result["others"].values())]
        readme_table.rewrite(folder / "performance.md", "\n\n".join(tables))
        for name, picture in pictures(result, language).items():
            (folder / f"performance-{name}.svg").write_text(picture, encoding="utf-8")


def measure() -> dict[str, Any]:
    """The main run, and one run for each number of threads up to the default."""
    most = read_processors().num_threads
    counts = [n for n in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64) if n < most] + [most]
    record = json.loads(readme_table.measured(MAIN))
    threads = [json.loads(readme_table.measured([*THREADS, "--threads", str(n)])) for n in counts]
    return {"main": record, "threads": threads}


def pictures(result: dict[str, Any], language: str) -> dict[str, str]:
    """The three curves: name of the file -> SVG."""
    words, record = WORDS[language], result["main"]
    threads = {
        words[part]: scaled(
            [(run["machine"]["num_threads"], middle(run, metric)) for run in result["threads"]]
        )
        for part, metric in (("prefill", "prefill_512_tokens_per_s"), ("decode", "decode_0_tokens_per_s"))
    }
    return {
        name: curves.svg_curves(
            series,
            title=words[name][0],
            x_name=words[name][1],
            y_name=words[name][2],
            doubling=name == "rows",
        )
        for name, series in (
            ("depth", series_of(record, r"decode_(\d+)_tokens_per_s", 1)),
            ("rows", series_of(record, r"rows_(\d+)_step_s", 1000)),
            ("threads", threads),
        )
    }


def series_of(record: dict[str, Any], pattern: str, factor: float) -> dict[str, list[tuple[float, float]]]:
    """Each engine's medians over the number in the metric's name."""
    found: dict[str, list[tuple[float, float]]] = {}
    for metric, engines in record["results"].items():
        if match := re.fullmatch(pattern, metric):
            for engine, values in engines.items():
                found.setdefault(engine, []).append((float(match[1]), median(values) * factor))
    return found


def middle(record: dict[str, Any], metric: str) -> float:
    """The median of ours."""
    return float(median(record["results"][metric]["tokenglass"]))


def scaled(points: list[tuple[int, float]]) -> list[tuple[float, float]]:
    """Values as multiples of the first."""
    return [(float(x), y / points[0][1]) for x, y in points]


if __name__ == "__main__":
    main()
