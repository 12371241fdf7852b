"""`tokenglass show`: what a model is, from its header: drawn, counted, and whether it fits this machine.

Of a model on a hub only the header is fetched. What is said: `show_record.py`; how it is drawn:
`show_drawing.py`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokenglass.cli.columns import clip, escaped, is_terminal, left, right, size, width
from tokenglass.cli.errors import translated
from tokenglass.cli.language import t
from tokenglass.cli.output import write
from tokenglass.cli.parser import Parser, wrap_columns
from tokenglass.cli.progress import download_progress
from tokenglass.cli.show_drawing import WIDTH, drawing, quantity
from tokenglass.cli.show_record import describe
from tokenglass.fit import KV_TYPES
from tokenglass.formats.foreign_folder import look_into
from tokenglass.formats.view import WEIGHT_FORMS
from tokenglass.hub import DEFAULT_MODEL, find, tokenizer_path

LABEL = 12
MOST_TEXT = 30
PLAIN = str.maketrans("│├╮╭╯╰┼┤─⊕←→×…", "|+..''++-+<>x.")
STYLES = {r"[│├╮╭╯╰┼┤─⊕←]+": "dim", r"\b(I?Q\d\w*|B?F\d+)\b": "cyan"}


def main(arguments: list[str]) -> int:
    """Prints what a model is; one JSON object with `--json`."""
    options = show_parser().values(arguments)
    entry = find(options["model"])
    with download_progress() as progress:
        path = tokenizer_path(options["model"], progress=progress)
    file, obstacle = look_into(path)
    with file:
        record = describe(
            file,
            obstacle,
            licence=entry.licence if entry and not Path(options["model"]).exists() else None,
            kv=options["kv"],
            weights=next((form for form in WEIGHT_FORMS if form == options["weights"]), None),
        )
    if options["json"]:
        write(json.dumps(record, ensure_ascii=False) + "\n")
    else:
        show("\n".join(page(record)) + "\n")
    return 0


def show_parser() -> Parser:
    """The parser behind `tokenglass show --help`."""
    parser = Parser("show", "What a model is, from its header alone: layers, sizes, tokenizer, memory.")
    add = parser.add_argument
    add("model", nargs="?", default=DEFAULT_MODEL, metavar="MODEL",
        help="path of a .gguf file or of a model's folder, or a name (default: ours)")  # fmt: skip
    add("--kv", choices=tuple(KV_TYPES), default="f16", help="memory with the cache in these numbers")
    add("--weights", choices=WEIGHT_FORMS, help="memory with the matrices in this form")
    add("--json", action="store_true", help="one JSON object with everything")
    return parser


def page(record: dict[str, Any]) -> Iterator[str]:
    """The lines to print, none wider than 80 cells."""
    yield clip(escaped(record["name"] or Path(record["path"]).name), WIDTH)
    kind = f"{clip(escaped(record['architecture']), 24)} · "
    if record["tensors"]:
        parameters = t("{n} parameters", n=quantity(record["parameters"]))
        kind += f"{parameters} · {size(record['num_bytes'])} · "
    yield kind + (t("it runs here") if record["runs"] else t("it cannot run here"))
    if not record["runs"]:
        yield from wrapped(translated(record["obstacle"]), WIDTH)
        if record["generates"]:
            yield t("Transformers may run it: --engine transformers")
    yield ""
    if record["tensors"]:
        yield from drawing(record)
    else:
        yield t("the weights are not here: only the tokenizer's files were fetched")
    yield ""
    for label, lines in facts(record):
        for i, line in enumerate(lines):
            yield left(t(label) if i == 0 else "", LABEL) + line
    if record["memory"]:
        yield ""
        yield from memory(record["memory"])


def facts(record: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """(label, lines) of what a model says about itself."""
    yield "file", [clip(escaped(Path(record["path"]).name), WIDTH - LABEL)]
    if types := shares(record):
        yield "weights", [", ".join(f"{name} {share:.1%}" for name, share in types.items())]
    if record["context_length"]:
        yield "context", [t("{n} positions", n=f"{record['context_length']:,}"), *_rope(record["rope"])]
    if record["experts"]:
        yield "experts", [t("{n}, {used} at a time", n=record["experts"], used=record["experts_used"] or "?")]
    yield "tokenizer", list(_tokenizer(record["tokenizer"]))
    template = record["chat_template"]
    knows = template and ", ".join(map(t, template["knows"]))
    if template is None:
        yield "template", [t("none: it continues texts")]
    else:
        characters = t("{n} characters", n=f"{template['characters']:,}")
        yield "template", [characters + (t("; knows {what}", what=knows) if knows else "")]
    yield "licence", [t(escaped(record["licence"] or "not stated"))]


def shares(record: dict[str, Any]) -> dict[str, float]:
    """Block type -> its share of the bytes, as far as kinds of one type tell it."""
    sums: dict[str, float] = {}
    for kind in record["tensors"]:
        tensors = sum(kind["types"].values())
        for name, count in kind["types"].items():
            sums[name] = sums.get(name, 0) + kind["num_parameters"] * count / tensors
    total = sum(sums.values()) or 1
    return {name: sums[name] / total for name in sorted(sums, key=lambda name: -sums[name])}


def _rope(rope: dict[str, Any] | None) -> Iterator[str]:
    if rope is None:
        return
    line = t("RoPE: base {base}, {dims} dimensions of a head", base=f"{rope['base']:,.0f}", dims=rope["dims"])
    if rope["scaling"] != "none":
        line += t(
            "; stretched ({kind}) from {n} positions",
            kind=rope["scaling"],
            n=f"{rope['original_context']:,}",
        )
    yield line


def _tokenizer(tokenizer: dict[str, Any]) -> Iterator[str]:
    if "problem" in tokenizer:
        yield from wrapped(translated(tokenizer["problem"]), WIDTH - LABEL)
        return
    names = " / ".join(escaped(name) for name in (tokenizer["model"], tokenizer["pre"]) if name)
    tokens = t("{n} tokens", n=f"{tokenizer['tokens']:,}")
    yield ", ".join(filter(None, (t(tokenizer["kind"]), names, tokens)))
    special = [(t(name), token) for name, token in tokenizer["special"].items()]
    special += [(t("ends"), token) for token in tokenizer["ends"]]
    line = ""
    for name, token in special:
        words = f"{name} {token['id']} {clip(escaped(token['text']), MOST_TEXT)}"
        if line and width(f"{line}   {words}") > WIDTH - LABEL:
            yield line
            line = ""
        line += f"   {words}" if line else words
    if line:
        yield line


def memory(needed: dict[str, Any]) -> Iterator[str]:
    """What the model needs, and a line for each length of a text."""
    parts = {
        "weights": needed["weights"],
        "working room": needed["activations"],
        "program": needed["process"],
    }
    yield left(t("memory"), LABEL) + ", ".join(f"{t(name)} {size(n)}" for name, n in parts.items())
    kept = t("cache ({kv}): {size} a position", kv=needed["kv"], size=size(needed["cache_bytes_per_token"]))
    if needed["machine"] is not None:
        kept += t("; this machine has {size}", size=size(needed["machine"]))
    yield " " * LABEL + kept
    heads = (t("positions"), t("cache"), t("everything"))
    yield ""
    yield " " * LABEL + "".join(right(head, 12) for head in heads) + "  " + t("fits")
    for row in needed["at"]:
        cells = (f"{row['positions']:,}", size(row["cache"]), size(row["total"]))
        fits = {True: t("yes"), False: t("no"), None: "?"}[row["fits"]]
        line = " " * LABEL + "".join(right(cell, 12) for cell in cells) + "  " + fits
        if row["cache_in_windows"] < row["cache"]:
            line += t("  ({size} in windows)", size=size(row["cache_in_windows"]))
        yield line


def wrapped(words: str, cells: int) -> Iterator[str]:
    """Lines of words that may come out of a file; one too long for a line is cut."""
    for line in wrap_columns(escaped(words), cells):
        yield clip(line, cells)


def show(text: str) -> None:
    """Prints with a little colour in a terminal, if NO_COLOR allows; in plain letters where boxes lack."""
    try:
        "│⊕→".encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = text.translate(PLAIN)
    if not is_terminal():
        write(text)
        return
    from rich.console import Console
    from rich.text import Text

    styled = Text(text, end="")
    styled.stylize("bold", 0, text.index("\n"))
    for pattern, style in STYLES.items():
        styled.highlight_regex(pattern, style)
    Console(highlight=False, soft_wrap=True).print(styled)
