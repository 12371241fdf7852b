"""`tokenglass next`: every score of the next token, before anything is drawn.

One forward pass gives the logits; any temperature and any cut is then exact (`sampling/distribution.py`).
Next: `step.py`, which takes tokens one after another.
"""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tokenglass.cli.columns import bar, clip, columns, left, percent, quoted, right
from tokenglass.cli.language import listed, t
from tokenglass.cli.looking import add_looking, opened
from tokenglass.cli.options import utf8
from tokenglass.cli.output import write
from tokenglass.cli.parser import Parser
from tokenglass.cli.prompt import read_prompt
from tokenglass.cli.sampling_options import add_sampling, sampling_of
from tokenglass.engine.scoring import rank_of
from tokenglass.engine.stepping import Stepper
from tokenglass.errors import ParameterError
from tokenglass.formats import open_model
from tokenglass.sampling import Draw, Sampling
from tokenglass.sampling.candidates import Scores
from tokenglass.sampling.distribution import Distribution, distribution
from tokenglass.tokens import Tokenizer, Vocabulary
from tokenglass.tokens.vocabulary import TokenKind

RAW = Sampling(temperature=1.0, seed=0)
NUMBER_CELLS = 8  # "100.00%"


@dataclass(frozen=True)
class Column:
    """One distribution of the table: under which temperature, with or without the cuts."""

    title: str
    temperature: float
    is_cut: bool
    values: Distribution


def main(arguments: list[str]) -> int:
    """Prints the distribution as a table, or as one JSON object."""
    values = next_parser().values(arguments)
    text = read_prompt(values["prompt"], "next")
    prompt = opened(values, text)
    vocabulary = prompt.engine.tokenizer.vocabulary
    named = [named_token(prompt.engine.tokenizer, name) for name in values["token"]]
    with Stepper(prompt.engine, prompt.ids) as stepper:
        scores = stepper.scores()
    shown = columns_of(scores, prompt.ids, values)
    ids = scores.top(0, values["top"]).tolist()
    ids += [token_id for token_id in dict.fromkeys(named) if token_id not in ids]
    ranks = [rank_of(scores.numpy()[0], token_id) for token_id in ids]
    rows_without_token = int(np.count_nonzero(vocabulary.kinds == TokenKind.UNUSED))
    if values["engine"] == "tokenglass":  # of the other one every row is in the vocabulary
        rows_without_token += padding_rows(prompt.path, vocabulary)
    if values["json"]:
        head = {
            "model": prompt.path.name,
            "chat": prompt.chat,
            "prompt_ids": prompt.ids,
            "logits_shape": [scores.vocab],
            "unused_rows": rows_without_token,
        }
        record = {**head, **distribution_record(vocabulary, scores, shown, ids, ranks)}
        write(json.dumps(record, ensure_ascii=False) + "\n")
        return 0
    write("\n".join(report(vocabulary, scores, shown, ids, ranks, rows_without_token)) + "\n")
    return 0


def next_parser() -> Parser:
    """The parser behind `tokenglass next --help`."""
    parser = Parser(
        "next",
        t("The distribution of the next token: logit, probability, entropy."),
        conflict_handler="resolve",  # --temperature takes a list here
    )
    add_looking(parser)
    parser.add_argument("--token", type=utf8, action="append", default=[], metavar="TEXT|#ID",
        help=t("show this token too, wherever it stands; may be given again"))  # fmt: skip
    add_sampling(parser)
    parser.add_argument("--temperature", type=temperatures, metavar="T,T,…",
        help=t("side by side, exact from one forward pass: 0.2,0.7,1.5"))  # fmt: skip
    return parser


def temperatures(argument: str) -> tuple[float, ...]:
    """`0.2,0.7` as (0.2, 0.7)."""
    try:
        return tuple(dict.fromkeys(float(part) for part in argument.replace("，", ",").split(",")))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be numbers with commas, like 0.2,0.7, not {argument!r}"
        ) from None


def named_token(tokenizer: Tokenizer, name: str) -> int:
    """The id that `--token` names: `#123`, or a text that is one token. ParameterError: it is not one."""
    vocabulary = tokenizer.vocabulary
    if re.fullmatch(r"#\d{1,12}", name):
        token_id = int(name[1:])
        if token_id >= vocabulary.num_tokens:
            raise ParameterError("--token", f"{name}: ids end at #{vocabulary.num_tokens - 1}")
        return token_id
    if name in vocabulary.control:
        return vocabulary.control[name]
    ids = tokenizer.encode(name, bos=False)
    if len(ids) == 1:
        return ids[0]
    raw = name.encode()
    exact = next((i for i in range(vocabulary.num_tokens) if vocabulary.token_bytes(i) == raw), None)
    if raw and exact is not None:
        return exact
    pieces = listed(f"{quoted(vocabulary.token_bytes(i))} #{i}" for i in ids[:8])
    raise ParameterError(
        "--token", f"{name!r} is {len(ids)} tokens: {pieces}", remedy="Name one of them, as #ID"
    )


def columns_of(scores: Scores, ids: list[int], values: dict[str, Any]) -> list[Column]:
    """The raw distribution, each temperature, and after each one's own column what the cuts leave of it."""
    raw = distribution(scores, 0, Draw(RAW, ids, len(ids)))
    found = [Column(t("raw"), 1.0, False, raw)]
    preset = sampling_of({**values, "temperature": None}).temperature if values["preset"] else 1.0
    for temperature in values["temperature"] or (preset,):
        asked = sampling_of({**values, "temperature": temperature})
        title = f"T={temperature:g}"
        plain = Sampling(temperature=temperature, seed=0)
        if temperature != 1.0:
            found.append(
                Column(title, temperature, False, distribution(scores, 0, Draw(plain, ids, len(ids))))
            )
        if has_cuts(asked):
            cut = distribution(scores, 0, Draw(asked, ids, len(ids)))
            found.append(
                Column(t("cut {temperature}", temperature=f"{temperature:g}"), temperature, True, cut)
            )
    return found


def has_cuts(sampling: Sampling) -> bool:
    """Whether anything but the temperature acts."""
    cuts = (sampling.top_k, sampling.top_p, sampling.min_p, sampling.typical_p)
    return sampling.has_edits or cuts != (0, 1.0, 0.0, 1.0)


def padding_rows(path: Path, vocabulary: Vocabulary) -> int:
    """Rows of the output matrix that belong to no token."""
    with open_model(path) as file:
        name = "output.weight" if "output.weight" in file.tensors else "token_embd.weight"
        return file.tensors[name].shape[0] - vocabulary.num_tokens


def report(
    vocabulary: Vocabulary,
    scores: Scores,
    shown: list[Column],
    ids: list[int],
    ranks: list[int],
    num_unused: int,
) -> list[str]:
    """The lines for people: shape, table, entropies, cuts."""
    lines = [
        t("logits [{n}]: one for each token of the vocabulary", n=scores.vocab)
        + (t("; {n} more rows belong to no token", n=num_unused) if num_unused else ""),
        "",
    ]
    token_cells = min(max(columns() - 67, 8), 30)  # 13 of 80: four columns side by side
    group_len = max(1, (columns() - 23 - token_cells) // (NUMBER_CELLS + 3))
    for start in range(0, len(shown), group_len):
        group = shown[start : start + group_len]
        is_alone = len(shown) == 1
        lines += table(vocabulary, scores, group, ids, ranks, token_cells=token_cells, is_alone=is_alone)
        lines.append("")
    for column in shown:
        lines.append(
            t("entropy {title}: {nats} nats = {bits} bits", title=column.title,
              nats=f"{column.values.entropy:.4f}", bits=f"{column.values.entropy_bits:.4f}")
        )  # fmt: skip
    for column in shown:
        for stage in column.values.stages:
            lines.append(
                t("{title}: {name} {setting} leaves {n} tokens and {mass} of the mass", title=column.title,
                  name=stage.name, setting=f"{stage.setting:g}", n=stage.survivors, mass=percent(stage.mass))
            )  # fmt: skip
    return lines


def table(
    vocabulary: Vocabulary,
    scores: Scores,
    group: list[Column],
    ids: list[int],
    ranks: list[int],
    *,
    token_cells: int,
    is_alone: bool,
) -> list[str]:
    """Rank, token, id, logit, and for each column probability and bar; alone also the sum so far."""
    left_over = columns() - 23 - token_cells - (NUMBER_CELLS + 1) * (len(group) + is_alone)
    bar_cells = max(1, min(40, left_over // len(group) - 1))
    head = f"{right(t('rank'), 5)} {left(t('token'), token_cells)} {right(t('id'), 7)} {right(t('logit'), 8)}"
    for column in group:
        head += " " + right(clip(column.title, NUMBER_CELLS), NUMBER_CELLS)
        head += " " + right(t("sum"), NUMBER_CELLS) if is_alone else " " * (bar_cells + 1)
    lines = [head.rstrip()]
    z = scores.numpy()[0]
    total = 0.0
    for i, (token_id, rank) in enumerate(zip(ids, ranks, strict=True)):
        if i and rank != ranks[i - 1] + 1:
            lines.append("    …")
        token = left(quoted(vocabulary.token_bytes(token_id)), token_cells)
        line = f"{rank:5} {token} {token_id:7} {z[token_id]:8.3f}"
        for column in group:
            p = float(column.values.p[token_id])
            total += p
            line += " " + right(percent(p), NUMBER_CELLS)
            if is_alone:
                in_order = rank == i + 1
                line += " " + right(percent(total) if in_order else "", NUMBER_CELLS)
            drawn = bar(p, bar_cells)
            line += " " + (drawn if is_alone else left(drawn, bar_cells))
        lines.append(line.rstrip())
    num_rest = scores.vocab - len(ids)
    line = left(t("rest, {n} tokens", n=f"{num_rest:,}"), token_cells + 22)
    for column in group:
        line += " " + right(percent(rest_of(column, ids)), NUMBER_CELLS)
        line += "" if is_alone else " " * (bar_cells + 1)
    lines.append(line.rstrip())
    return lines


def rest_of(column: Column, ids: list[int]) -> float:
    """What all tokens but `ids` have together."""
    return max(0.0, 1.0 - float(column.values.p[ids].sum()))


def distribution_record(
    vocabulary: Vocabulary, scores: Scores, shown: list[Column], ids: list[int], ranks: list[int]
) -> dict[str, Any]:
    """The part of --json that holds numbers; entropies in nats unless the name says bits."""
    z = scores.numpy()[0]
    raw = shown[0].values
    cumulative = np.cumsum(np.sort(raw.p)[::-1])
    return {
        "entropy": raw.entropy,
        "entropy_bits": raw.entropy_bits,
        "columns": [
            {
                "title": column.title,
                "temperature": column.temperature,
                "is_cut": column.is_cut,
                "entropy": column.values.entropy,
                "entropy_bits": column.values.entropy_bits,
                "survivors": column.values.survivors,
                "stages": [stage._asdict() for stage in column.values.stages],
                "rest": rest_of(column, ids),
            }
            for column in shown
        ],
        "candidates": [
            {
                "rank": rank,
                "token_id": i,
                "text": vocabulary.token_bytes(i).decode(errors="replace"),
                "bytes": list(vocabulary.token_bytes(i)),
                "logit": float(z[i]) if np.isfinite(z[i]) else None,
                "probability": float(raw.p[i]),
                "cumulative": float(cumulative[rank - 1]),
                "columns": [float(column.values.p[i]) for column in shown],
            }
            for i, rank in zip(ids, ranks, strict=True)
        ],
    }
