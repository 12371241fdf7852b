"""What int8 activations cost: KL and perplexity against the exact mode, and llama.cpp's, on the same ids.

    python bench/quality.py [MODEL]                 # prints one JSON line and appends it to bench/results
    python bench/quality.py --write-docs            # and rewrites the tables of docs/*/quality.md
    python bench/quality.py --write-docs --from-results

The claim: KL(exact || default) is at most 1.02 times llama.cpp's, and perplexity is within 0.5% of the exact
mode's. Both engines read the same windows of ids, each from an empty cache; llama.cpp counts with the better
one of flash attention on and off. Texts: the chapters of the Debian Reference, English and Chinese, or
`--text en=FILE` (.html or plain). Needs the extra [peers]. The numbers do not depend on the machine's load.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tokenglass.bench.machine import commit, describe_machine
from tokenglass.engine import Engine, load
from tokenglass.engine.all_rows import all_rows
from tokenglass.hub import DEFAULT_MODEL, resolve

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "quality.jsonl"
WINDOW = 512  # ids of one window
ROWS = 64  # rows of float64 log-probabilities at a time
TEXT_BYTES = 25_000  # of each language
NUM_DRAWS = 10_000  # of the bootstrap
PACKAGES = {"en": "debian-reference-en", "zh": "debian-reference-zh-cn"}  # Debian, GPL; not committed
FOLDER = Path("/usr/share/debian-reference")
CHAPTERS = ("pr01", "ch01", "ch02")
EXACT, OURS, THEIRS = "exact", "tokenglass", ("llama.cpp", "llama.cpp, flash attention")

Logits: TypeAlias = NDArray[np.float32]  # [ids, vocab]
Compute: TypeAlias = Callable[[Sequence[int]], Logits]
Figures: TypeAlias = dict[str, Any]


def main() -> None:
    options = parsed(sys.argv[1:])
    if options.from_results:
        line = RESULTS.read_text(encoding="utf-8").splitlines()[-1]
    else:
        line = json.dumps(measured(options), ensure_ascii=False)
        RESULTS.parent.mkdir(exist_ok=True)
        with RESULTS.open("a", encoding="utf-8") as results:
            results.write(line + "\n")
    record = json.loads(line)
    print(table(record, "en"))
    if options.write_docs:
        for language in PACKAGES:
            rewrite(ROOT / "docs" / language / "quality.md", table(record, language), "quality")


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="KL and perplexity against the exact mode")
    parser.add_argument("model", nargs="?", default=DEFAULT_MODEL)
    parser.add_argument("--text", action="append", default=[], metavar="LANGUAGE=FILE")
    parser.add_argument("--bytes", type=int, default=TEXT_BYTES, help="of each text")
    parser.add_argument("--threads", type=int, help="of both engines; changes no figure of ours")
    parser.add_argument("--write-docs", action="store_true")
    parser.add_argument("--from-results", action="store_true", help="measure nothing, take the last result")
    return parser.parse_args(arguments)


# --- measuring ---


def measured(options: argparse.Namespace) -> Figures:
    """The record of one run: each window's figures, from which every mean and error can be made again."""
    model = resolve(options.model)
    record = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": describe_machine(),
        "model": model.name,
        "peer": f"llama-cpp-python {version('llama-cpp-python')}",
    }
    threads = options.threads
    exact = load(model, activations="f32", kv="f32", context_length=WINDOW, num_threads=threads)
    arms = {OURS: ours(load(model, context_length=WINDOW, num_threads=threads))}
    for name, flash in zip(THEIRS, (False, True), strict=True):
        arms[name] = theirs(model, flash=flash, num_threads=exact.model.cpu.num_threads)
    texts = {language: beginning(read_text(files), options.bytes) for language, files in sources(options)}
    cuts = [(language, ids) for language, text in texts.items() for ids in cut(exact, text)]
    windows = []
    for number, (language, ids) in enumerate(cuts):
        print(f"window {number + 1} of {len(cuts)}", file=sys.stderr)
        windows.append({"text": language, **compare(ids, ours(exact), arms)})
    sizes = {language: len(text.encode()) for language, text in texts.items()}
    return {**record, "bytes": sizes, "windows": windows}


def ours(engine: Engine) -> Compute:
    """All logits of a window, by our engine."""
    return lambda ids: np.concatenate([scores.numpy().copy() for _, scores in all_rows(engine, ids)])


def theirs(model: Path, *, flash: bool, num_threads: int) -> Compute:
    """The same by llama.cpp, with its default (float16) keys and values."""
    from llama_cpp import Llama

    llama = Llama(str(model), n_ctx=WINDOW, n_batch=WINDOW, n_ubatch=WINDOW, logits_all=True, verbose=False,
                  flash_attn=flash, n_threads=num_threads, n_threads_batch=num_threads)  # fmt: skip

    def compute(ids: Sequence[int]) -> Logits:
        llama.n_tokens = 0  # an empty cache
        llama.eval(ids)
        return np.array(llama.scores[: len(ids)])

    return compute


def cut(engine: Engine, text: str) -> Iterator[list[int]]:
    """Windows of ids, each with the BOS that the model wants; the last one may be shorter."""
    vocabulary = engine.tokenizer.vocabulary
    start = [vocabulary.bos_id] if vocabulary.add_bos and vocabulary.bos_id is not None else []
    ids, step = engine.tokenizer.encode(text, bos=False), WINDOW - len(start)
    for first in range(0, len(ids) - 1, step):
        yield start + ids[first : first + step]


def compare(ids: Sequence[int], exact: Compute, arms: dict[str, Compute]) -> Figures:
    """One window's means over its predictions of a known next id: `figures_of` each arm, against the exact
    mode's logits.
    """
    logits = {name: compute(ids)[:-1] for name, compute in {EXACT: exact, **arms}.items()}
    targets, sums = np.asarray(ids[1:]), {name: np.zeros(3) for name in logits}
    for start in range(0, len(targets), ROWS):
        rows = slice(start, start + ROWS)
        log_p = log_softmax(logits[EXACT][rows])
        for name, scores in logits.items():
            log_q = log_p if name == EXACT else log_softmax(scores[rows])
            sums[name] += figures_of(log_p, log_q, targets[rows]).sum(1)
    means = {name: (total / len(targets)).tolist() for name, total in sums.items()}
    return {
        "positions": len(targets),
        **{name: dict(zip(("kl", "loss", "same"), values, strict=True)) for name, values in means.items()},
    }


def figures_of(
    log_p: NDArray[np.float64], log_q: NDArray[np.float64], targets: NDArray[np.int_]
) -> NDArray[np.float64]:
    """[3, rows]: KL(p || q) = sum of p (log p - log q), in nats; the loss -log q(target); 1 where the best
    tokens of p and q are the same, else 0.
    """
    kl = (np.exp(log_p) * (log_p - log_q)).sum(1)
    loss = -log_q[np.arange(len(targets)), targets]
    return np.stack([kl, loss, log_p.argmax(1) == log_q.argmax(1)])


def log_softmax(logits: Logits) -> NDArray[np.float64]:
    """Of each row, in double precision."""
    shifted = logits.astype(np.float64)
    shifted -= shifted.max(1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(1, keepdims=True))
    return shifted


# --- texts ---


def sources(options: argparse.Namespace) -> list[tuple[str, list[Path]]]:
    """(language, its files)."""
    if options.text:
        pairs = [text.partition("=") for text in options.text]
        return [(language, [Path(file)]) for language, _, file in pairs]
    found = []
    for language, package in PACKAGES.items():
        suffix = package.removeprefix("debian-reference-")
        files = [FOLDER / f"{chapter}.{suffix}.html" for chapter in CHAPTERS]
        if not all(file.is_file() for file in files):
            sys.exit(f"No text: apt-get install {package}, or give one with --text {language}=FILE")
        found.append((language, files))
    return found


def read_text(files: Sequence[Path]) -> str:
    texts = [(file.suffix, file.read_text(encoding="utf-8")) for file in files]
    return "\n".join("\n".join(paragraphs(text)) if suffix == ".html" else text for suffix, text in texts)


def paragraphs(html: str) -> list[str]:
    """The text of each <p>, with white space as a browser shows it."""
    parser = Paragraphs()
    parser.feed(html)
    return [text for part in parser.found if (text := " ".join("".join(part).split()))]


class Paragraphs(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[list[str]] = []
        self.inside = False

    def handle_starttag(self, tag: str, attributes: object) -> None:
        if tag == "p":
            self.inside = True
            self.found.append([])

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "p"

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.found[-1].append(data)


def beginning(text: str, num_bytes: int) -> str:
    """The first `num_bytes` of UTF-8, no half character at the end."""
    return text.encode()[:num_bytes].decode(errors="ignore")


# --- the tables ---

HEADS = {
    "en": ("text", "engine", "KL to the exact mode", "same best token", "perplexity", "against exact"),
    "zh": ("文本", "引擎", "与精确模式的 KL", "最佳词元相同", "困惑度", "与精确模式相比"),
}
TEXTS = {
    "en": {"en": "English", "zh": "Chinese", "all": "both"},
    "zh": {"en": "英文", "zh": "中文", "all": "合计"},
}


def table(record: Figures, language: str) -> str:
    """Two Markdown tables and where they come from, in one language."""
    names = [name for name in TEXTS["en"] if name == "all" or name in record["bytes"]]
    groups = {name: [w for w in record["windows"] if name in ("all", w["text"])] for name in names}
    best = min(THEIRS, key=lambda arm: total(groups["all"], arm, "kl").sum())
    lines = ["| " + " | ".join(HEADS[language]) + " |", "|---|---|---|---|---|---|"]
    for name, windows in groups.items():
        positions, word = np.array([w["positions"] for w in windows], np.float64), TEXTS[language][name]
        for arm in (EXACT, OURS, *THEIRS):
            (kl, error), (same, _), (loss, _), (exact, _) = (
                quotient(total(windows, which, what), positions)
                for which, what in ((arm, "kl"), (arm, "same"), (arm, "loss"), (EXACT, "loss"))
            )
            lines.append(
                f"| {word} | {arm} | {kl:.5f} ± {error:.5f} | {same:.1%} "
                f"| {math.exp(loss):.3f} | {math.expm1(loss - exact):+.2%} |"
            )
    ratios = {n: quotient(total(ws, OURS, "kl"), total(ws, best, "kl")) for n, ws in groups.items()}
    words = ("; " if language == "en" else "；").join(
        f"{TEXTS[language][n]} {r:.3f} ± {e:.3f}" for n, (r, e) in ratios.items()
    )
    tokens = sum(w["positions"] for w in record["windows"])
    size, machine = sum(record["bytes"].values()), record["machine"]["cpu"]
    if language == "en":
        lines += ["", f"KL of tokenglass divided by that of {best}: **{words}**.", ""]
        lines.append(
            f"{record['model']}, {size:,} bytes of text, {tokens:,} predictions in {len(groups['all'])} "
            f"windows of {WINDOW}; {record['peer']}; ± is one standard error over windows, paired for the "
            f"ratio. {machine}; commit {record['commit']}, {record['time'][:10]}."
        )
    else:
        lines += ["", f"tokenglass 的 KL 除以 {best} 的 KL：**{words}**。", ""]
        lines.append(
            f"{record['model']}，{size:,} 字节文本，{tokens:,} 次预测，{len(groups['all'])} 个窗口，"
            f"每个 {WINDOW} 个词元；{record['peer']}；± 是以窗口为单位的一个标准误，比值的标准误为成对计算。"
            f"{machine}；提交 {record['commit']}，{record['time'][:10]}。"
        )
    return "\n".join(lines)


def total(windows: Sequence[Figures], arm: str, what: str) -> NDArray[np.float64]:
    """Each window's sum over its predictions, float64 [windows]."""
    return np.array([w["positions"] * w[arm][what] for w in windows])


def quotient(over: NDArray[np.float64], under: NDArray[np.float64]) -> tuple[float, float]:
    """(sum over / sum under, its standard error by the bootstrap over windows, whose positions depend on each
    other). Both sums take the same windows at each draw: what is hard for both counts for neither.
    """
    draws = np.random.default_rng(0).integers(0, len(over), (NUM_DRAWS, len(over)))
    return float(over.sum() / under.sum()), float((over[draws].sum(1) / under[draws].sum(1)).std())


def rewrite(path: Path, text: str, name: str) -> None:
    """Puts `text` between the markers `name` of a page; everything else stays as it is."""
    page = path.read_text(encoding="utf-8")
    head, begin, rest = page.partition(f"<!-- {name}:begin -->")
    _, end, tail = rest.partition(f"<!-- {name}:end -->")
    if not (begin and end):
        sys.exit(f"{path.name} has no place for {name}")
    path.write_text(f"{head}{begin}\n{text}\n{end}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
