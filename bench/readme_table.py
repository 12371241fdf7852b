"""The measured tables: measure, keep the result, rewrite README.md and README.zh-CN.md.

    python bench/readme_table.py                    # tokenglass bench --vs llama.cpp, then both files
    python bench/readme_table.py --from-results     # only rewrite, from the last line of the results

Needs llama-cpp-python. Run it on a quiet machine; arguments it does not know go to `tokenglass bench`. The
page docs/*/performance.md is written by `performance_page.py`, with the words and markers of this file;
it rewrites the READMEs too.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenglass.bench.table import markdown_table

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "readme_table.jsonl"
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
SHOWN = [
    "read_bytes_per_s", "int8_per_s", "prefill_128_tokens_per_s", "prefill_512_tokens_per_s",
    "prefill_512_share", "decode_0_tokens_per_s", "decode_0_share", "decode_0_python_share",
    "decode_512_tokens_per_s", "rows_8_tokens_per_s", "rows_32_tokens_per_s", "cold_start_s", "memory_bytes",
]  # fmt: skip
CHINESE = {
    "memory, {n} thread": "内存，{n} 个线程",
    "memory, all threads": "内存，全部线程",
    "int8 peak": "int8 峰值",
    "prefill {n}": "预填充 {n} token",
    "prefill {n}, of int8 peak": "预填充 {n}，占 int8 峰值",
    "prefill {n}, products of peak": "预填充 {n}，仅矩阵乘法占峰值",
    "decode after {n}": "在 {n} 个 token 之后解码",
    "decode after {n}, read": "在 {n} 个之后解码，读取",
    "decode after {n}, of memory": "在 {n} 个之后解码，占内存上限",
    "decode after {n}, products": "在 {n} 个之后解码，仅矩阵乘法占上限",
    "decode after {n}, Python": "在 {n} 个之后解码，Python 的占比",
    "{n} at once": "{n} 路同时",
    "{n} at once, a step": "{n} 路同时，一步",
    "cold start": "冷启动到第一个 token",
    "peak memory": "内存峰值",
    "ratio": "比值",
}


def main() -> None:
    arguments = sys.argv[1:]
    if "--from-results" in arguments:
        line = RESULTS.read_text(encoding="utf-8").splitlines()[-1]
    else:
        line = measured(["--vs", "llama.cpp", *arguments])
        keep(RESULTS, line)
    rewrite_readmes(json.loads(line))


def rewrite_readmes(record: dict[str, Any]) -> None:
    """The rows of SHOWN in both READMEs."""
    rewrite(ROOT / "README.md", english(record, SHOWN))
    rewrite(ROOT / "README.zh-CN.md", chinese(record, SHOWN))


def measured(arguments: Sequence[str]) -> str:
    """One JSON line from `tokenglass bench`."""
    command = [sys.executable, "-m", "tokenglass", "bench", "--json", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def keep(results: Path, line: str) -> None:
    """Appends a result to its file."""
    results.parent.mkdir(exist_ok=True)
    with results.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def english(record: dict[str, Any], shown: Sequence[str] | None = None) -> str:
    """The table and where it comes from."""
    machine, plan = record["machine"], record["plan"]
    lines = [
        markdown_table(record, {}, shown),
        "",
        f"{record['model']} on {machine['cpu']}, {machine['num_threads']} threads ({machine['isa']}); "
        f"medians of {plan['rounds']} rounds in turns; commit {record['commit']}, {record['time'][:10]}.",
    ]
    lines += [f"{peer['name']}: {peer['version']}, {peer['how']}." for peer in record["peers"]]
    return "\n".join(lines)


def chinese(record: dict[str, Any], shown: Sequence[str] | None = None) -> str:
    """The same in Chinese."""
    machine, plan = record["machine"], record["plan"]
    lines = [
        markdown_table(record, CHINESE, shown),
        "",
        f"{record['model']}，{machine['cpu']}，{machine['num_threads']} 个线程（{machine['isa']}）；"
        f"交替测量 {plan['rounds']} 轮，取中位数；提交 {record['commit']}，{record['time'][:10]}。",
    ]
    lines += [f"{peer['name']}：{peer['version']}，{peer['how']}。" for peer in record["peers"]]
    return "\n".join(lines)


def rewrite(path: Path, text: str) -> None:
    """Puts `text` between the markers of a file; everything else stays as it is."""
    page = path.read_text(encoding="utf-8")
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        sys.exit(f"{path.name} has no {BEGIN} … {END}")
    path.write_text(f"{head}{BEGIN}\n{text}\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
