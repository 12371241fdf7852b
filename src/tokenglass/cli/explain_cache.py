"""`tokenglass explain-cache`: the same tokens computed without and with a cache, measured side by side.

The two loops are in `cache_loops.py`, the plots in `cache_plot.py`. Bytes of the cache for each token =
2 (K and V) x layers x KV heads x head size x bytes per value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tokenglass.cli.cache_loops import Measured, cached_loop, measure, naive_loop
from tokenglass.cli.cache_plot import CACHED, NAIVE, svg_plot, text_plot
from tokenglass.cli.columns import right
from tokenglass.cli.language import t
from tokenglass.cli.model_options import ModelOptions, add_machine, add_model, find_model
from tokenglass.cli.options import utf8
from tokenglass.cli.output import say, write
from tokenglass.cli.parser import Parser
from tokenglass.cli.prompt import read_prompt
from tokenglass.engine import Engine
from tokenglass.engine.load import MAX_ROWS
from tokenglass.errors import ParameterError, TokenglassError
from tokenglass.formats import open_model
from tokenglass.hub import model_name
from tokenglass.models.config import DecoderConfig, read_config
from tokenglass.sampling.params import check_integer

MAX_TOKENS = 128
FIRST_LENGTH = 8
MAX_WINDOW = 8192  # of prompt and tokens; buffers for so many rows are made
EPILOG = (
    "Without a cache the time for each token grows with the text, so doubling --max-tokens takes about four "
    "times as long. The best token is taken each time, and end tokens do not end it."
)


def main(arguments: list[str]) -> int:
    """Prints the comparison as lines, or (--json) as one object."""
    options = explain_parser().values(arguments)
    num_tokens = options["max_tokens"]
    check_integer("max_tokens", num_tokens, 1, 1 << 16)
    if options["engine"] != "tokenglass":
        raise ParameterError("--engine", "must be tokenglass here: it is our own cache that is explained")
    if options["svg"] is not None:
        with writing(options["svg"]):
            options["svg"].open("a").close()  # refused now, not after the measuring; what is in it stays
    text = read_prompt(options["prompt"], "explain-cache")
    path = find_model(options["model"])
    with open_model(path) as file:
        config = read_config(file)
    # room for all rows in one pass, so that both loops make the same number of passes
    window = min(config.context_length, MAX_WINDOW)
    if options["context"] is not None:
        check_integer("context_length", options["context"], 2, window)
        window = options["context"]
    max_rows = max(MAX_ROWS, min(window, num_tokens + len(text.encode()) + 1))
    engine = replace(ModelOptions.of(options), context=window).load(path, max_rows=max_rows)
    ids = prompt_ids(engine, text, num_tokens)

    is_json = options["json"]
    if not is_json:
        write(t("{p} prompt tokens, {n} tokens after them", p=len(ids), n=num_tokens) + "\n\n" + header())
    measure(cached_loop, engine, ids, 1)  # first touch of buffers, not counted
    cached = measure(cached_loop, engine, ids, num_tokens)

    def show_length(naive: Measured) -> None:
        if not is_json and len(naive.seconds) in lengths(num_tokens):
            write(row(naive, cached, len(naive.seconds)))

    naive = measure(naive_loop, engine, ids, num_tokens, show_length)
    record = {"model": path.name, **record_of(engine, config, len(ids), naive, cached)}
    if is_json:
        write(json.dumps(record) + "\n")
    else:
        write(summary(record) + "\n\n" + plot(naive, cached) + "\n")
    if options["svg"] is not None:
        write_svg(options["svg"], model_name(path), naive, cached)
    return 0


def explain_parser() -> Parser:
    """The parser behind `tokenglass explain-cache --help`."""
    parser = Parser("explain-cache", "What keeping keys and values saves, measured here.", epilog=EPILOG)
    add = parser.add_argument
    add("prompt", nargs="?", type=utf8, help="the text to continue; - or nothing: read it from stdin")
    add_model(parser)
    add(
        "--max-tokens",
        type=int,
        default=MAX_TOKENS,
        metavar="N",
        help="tokens to make (default: %(default)s)",
    )
    add("--svg", type=Path, metavar="FILE", help="write the plot as a picture, too")
    add("--json", action="store_true", help="one JSON object with the times of every single token")
    add_machine(parser)
    return parser


def prompt_ids(engine: Engine, text: str, num_tokens: int) -> list[int]:
    """The ids of the text as it is. ParameterError: they and the new tokens are more than the window."""
    ids = engine.tokenizer.encode(text)
    if len(ids) + num_tokens > engine.context_length:
        raise ParameterError(
            "max_tokens",
            t(
                "of {n} and the {p} of the prompt are more than the context window's {window}",
                n=num_tokens,
                p=len(ids),
                window=engine.context_length,
            ),
        )
    return ids


def lengths(num_tokens: int) -> list[int]:
    """8, 16, 32, … and the last one: `lengths(100) == [8, 16, 32, 64, 100]`."""
    doubled = [FIRST_LENGTH << i for i in range(17)]
    return [*(length for length in doubled if length < num_tokens), num_tokens]


def ratio(naive: Measured, cached: Measured, num_tokens: int) -> float:
    """How many times faster the first `num_tokens` are with the cache."""
    return cached.tokens_per_s(num_tokens) / naive.tokens_per_s(num_tokens)


def tenfold_from(naive: Measured, cached: Measured) -> int | None:
    """The number of tokens from which on the cache makes it ten times as fast; None: it never did."""
    total = len(naive.seconds)
    found = None
    for num_tokens in range(total, 0, -1):
        if ratio(naive, cached, num_tokens) < 10:
            break
        found = num_tokens
    return found


def header() -> str:
    """The titles over `row`."""
    titles = (t("tokens"), t("without cache"), t("with cache"), t("ratio"), t("last token alone"))
    return "".join(right(title, cells) for title, cells in zip(titles, WIDTHS, strict=True)) + "\n"


WIDTHS = (8, 18, 18, 10, 20)


def row(naive: Measured, cached: Measured, n: int) -> str:
    """One line of the table: the speeds of the first `n` tokens."""
    cells = (
        str(n),
        f"{naive.tokens_per_s(n):.1f} {t('tokens/s')}",
        f"{cached.tokens_per_s(n):.1f} {t('tokens/s')}",
        f"{ratio(naive, cached, n):.1f}",
        f"{naive.seconds[n - 1] / cached.seconds[n - 1]:.1f}",
    )
    return "".join(right(cell, width) for cell, width in zip(cells, WIDTHS, strict=True)) + "\n"


def record_of(
    engine: Engine, config: DecoderConfig, num_prompt: int, naive: Measured, cached: Measured
) -> dict[str, Any]:
    """Everything measured and counted, for --json and for the summary."""
    total = len(naive.token_ids)
    num_bytes = engine.model.kv_bytes_per_token
    num_kept = num_prompt + total - 1  # the last token has been chosen but not read
    return {
        "prompt_tokens": num_prompt,
        "max_tokens": total,
        "by_length": [
            {
                "tokens": n,
                "naive_tokens_per_s": naive.tokens_per_s(n),
                "cached_tokens_per_s": cached.tokens_per_s(n),
                "ratio": ratio(naive, cached, n),
            }
            for n in lengths(total)
        ],
        "tenfold_from": tenfold_from(naive, cached),
        "forward_passes": {"naive": len(naive.rows), "cached": len(cached.rows)},
        "rows": {"naive": sum(naive.rows), "cached": sum(cached.rows)},
        "kv": {
            "layers": config.num_layers,
            "kv_heads": config.num_kv_heads,
            "head_dim": config.head_dim,
            "value_bytes": num_bytes / config.kv_values_per_token,
            "bytes_per_token": num_bytes,
            "tokens": num_kept,
            "bytes": num_bytes * num_kept,
        },
        "same_ids": naive.token_ids == cached.token_ids,
        "token_ids": cached.token_ids,
        "naive_s": naive.seconds,
        "cached_s": cached.seconds,
        "num_threads": engine.model.cpu.num_threads,
        "isa": engine.model.cpu.isa,
    }


def summary(record: dict[str, Any]) -> str:
    """What the numbers mean, each with its formula."""
    n, p, kv = record["max_tokens"], record["prompt_tokens"], record["kv"]
    last = record["by_length"][-1]["ratio"]
    tenfold = (
        t("ten times as fast from {n} tokens on", n=record["tenfold_from"])
        if record["tenfold_from"]
        else t("tenfold was not reached: {ratio} times at {n} tokens", ratio=f"{last:.1f}", n=n)
    )
    passes, rows = record["forward_passes"], record["rows"]
    sums = "+".join(str(p + i) for i in range(min(n, 2))) + (f"+…+{p + n - 1}" if n > 2 else "")
    news = f"{p}" + (f"+{n - 1}x1" if n > 1 else "")
    same = t("yes") if record["same_ids"] else t("NO: this is a bug, please report it")
    return "\n".join(
        [
            "",
            tenfold,
            t("forward passes: {naive} without, {cached} with", **passes),
            t("rows computed: {naive} without ({sums})", naive=rows["naive"], sums=sums),
            t("               {cached} with ({news})", cached=rows["cached"], news=news),
            t(
                "cache: 2 (K and V) x {layers} layers x {kv_heads} KV heads x {head_dim} values "
                "x {value_bytes:g} bytes",
                **kv,
            ),
            t("       = {bytes_per_token} bytes for each token, {bytes} for {tokens}", **kv),
            t("same tokens: {same}", same=same),
        ]
    )


def plot(naive: Measured, cached: Measured) -> str:
    """The plot of plain characters."""
    caption = t("milliseconds for each token: {a} without, {b} with cache", a=NAIVE, b=CACHED)
    return text_plot(_ms(naive), _ms(cached), caption=caption)


def write_svg(path: Path, model: str, naive: Measured, cached: Measured) -> None:
    """Writes the picture. TokenglassError: the file cannot be written."""
    title = f"{model}: {t('milliseconds for each token')}"
    words = {"naive": t("without cache"), "cached": t("with cache"), "axis": t("tokens")}
    with writing(path):
        path.write_text(svg_plot(_ms(naive), _ms(cached), title=title, **words), encoding="utf-8")
    say(t("the plot is in {path}", path=path))


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """TokenglassError in place of what the system says: which file, and why it cannot be written."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TokenglassError(t("cannot write {path}: {reason}", path=path, reason=reason)) from error


def _ms(measured: Measured) -> list[float]:
    return [seconds * 1e3 for seconds in measured.seconds]
