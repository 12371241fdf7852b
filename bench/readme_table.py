"""The measured table in README.md and README.zh-CN.md: measure, keep the result, rewrite both tables.

    python bench/readme_table.py                    # tokenglass bench --vs llama.cpp, then both files
    python bench/readme_table.py --from-results     # only rewrite, from the last line of the results

Needs the extra [peers]. Run it on a quiet machine; arguments it does not know go to `tokenglass bench`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tokenglass.bench.table import markdown_table

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "readme_table.jsonl"
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
CHINESE = {
    "prefill 512": "预填充 512 token",
    "prefill 128": "预填充 128 token",
    "decode": "解码",
    "weights read": "解码时读取权重",
    "memory's limit": "内存读取上限",
    "share of the limit": "占上限的比例",
    "Python in a step": "每步中 Python 的占比",
    "cold start": "冷启动到第一个 token",
    "peak memory": "内存峰值",
    "ratio": "比值",
}


def main() -> None:
    arguments = sys.argv[1:]
    if "--from-results" in arguments:
        line = RESULTS.read_text(encoding="utf-8").splitlines()[-1]
    else:
        line = measured(arguments)
        RESULTS.parent.mkdir(exist_ok=True)
        with RESULTS.open("a", encoding="utf-8") as results:
            results.write(line + "\n")
    record = json.loads(line)
    rewrite(ROOT / "README.md", english(record))
    rewrite(ROOT / "README.zh-CN.md", chinese(record))


def measured(arguments: list[str]) -> str:
    """One JSON line from `tokenglass bench`."""
    command = [sys.executable, "-m", "tokenglass", "bench", "--vs", "llama.cpp", "--json", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def english(record: dict[str, Any]) -> str:
    """The table and where it comes from, for README.md."""
    machine, plan, peer = record["machine"], record["plan"], record["peer"]
    return (
        f"{markdown_table(record, {})}\n\n"
        f"{record['model']} on {machine['cpu']}, {machine['num_threads']} threads ({machine['isa']}); "
        f"medians of {plan['rounds']} rounds in turns with {peer['version']} ({peer['how']}); "
        f"commit {record['commit']}, {record['time'][:10]}; made by `python bench/readme_table.py`."
    )


def chinese(record: dict[str, Any]) -> str:
    """The same for README.zh-CN.md."""
    machine, plan, peer = record["machine"], record["plan"], record["peer"]
    return (
        f"{markdown_table(record, CHINESE)}\n\n"
        f"{record['model']}，{machine['cpu']}，{machine['num_threads']} 个线程（{machine['isa']}）；"
        f"与 {peer['version']} 交替测量 {plan['rounds']} 轮，取中位数；"
        f"llama.cpp 取 flash attention 开与关中较快的一个；"
        f"提交 {record['commit']}，{record['time'][:10]}；由 `python bench/readme_table.py` 生成。"
    )


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
