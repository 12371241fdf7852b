"""`tokenglass score`: how likely a text is, token by token; or which continuation is the likelier.

The numbers: `engine/scoring.py`. For a whole file: `perplexity.py`.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenglass.cli.columns import bar, bare, columns, is_terminal, left, percent, quoted, right
from tokenglass.cli.errors import translated
from tokenglass.cli.language import t
from tokenglass.cli.model_options import ModelOptions, add_machine, add_model, find_model
from tokenglass.cli.options import utf8
from tokenglass.cli.output import say, write
from tokenglass.cli.parser import Parser
from tokenglass.cli.scripts import loss_hint
from tokenglass.cli.tokens import read_text
from tokenglass.engine import Engine
from tokenglass.engine.scoring import LN2, TokenScores, continued, exp, token_scores
from tokenglass.errors import ParameterError
from tokenglass.tokens import Vocabulary

STYLES = ("", "on green", "on yellow", "on red", "bold on red")  # by surprisal: under 1, 4, 8, 12 bits, more
STYLE_BITS = (1.0, 4.0, 8.0, 12.0)


@dataclass(frozen=True)
class Scored:
    """A text and its scores, or what follows a prompt: then `start` is where that begins."""

    text: str
    start: int
    scores: TokenScores

    @property
    def logprobs(self) -> NDArray[np.float64]:
        return self.scores.logprobs[self.start :]

    @property
    def total(self) -> float:
        return float(self.logprobs.sum())

    @property
    def perplexity(self) -> float:
        return exp(-self.total / len(self.logprobs))


def main(arguments: list[str]) -> int:
    """Prints one text's tokens with their scores, or the continuations, the likeliest first."""
    values = score_parser().values(arguments)
    text = read_text(values["text"], is_words=values["words"])
    if not text:
        raise ParameterError("text", "is empty")
    path = find_model(values["model"])
    engine = ModelOptions.of(values).load(path)
    for note in filter(None, [*map(translated, engine.model.notes), loss_hint(engine.tokenizer, text)]):
        say(note)
    found = list(scored(engine, text, values["continuation"], top=values["top"]))
    vocabulary = engine.tokenizer.vocabulary
    if values["json"]:
        record = {"model": path.name, "text": text, "scores": [record_of(vocabulary, one) for one in found]}
        write(json.dumps(record, ensure_ascii=False) + "\n")
        return 0
    if len(found) > 1:
        write("\n".join(ranking(found)) + "\n")
        return 0
    show_text(vocabulary, found[0])
    write("\n".join([*table(vocabulary, found[0]), "", summary(vocabulary, found[0])]) + "\n")
    return 0


def score_parser() -> Parser:
    """The parser behind `tokenglass score --help`."""
    parser = Parser("score", t("How likely a text is, token by token; which continuation is the likelier."))
    add = parser.add_argument
    add("text", nargs="?", type=utf8, metavar="TEXT|FILE",
        help=t("a text, or the path of a file; - or nothing: stdin"))  # fmt: skip
    add_model(parser)
    add("-c", "--continuation", type=utf8, action="append", default=[], metavar="TEXT",
        help=t("score only this, behind the text; again for others, to compare them"))  # fmt: skip
    add("--text", action="store_true", dest="words", help=t("the argument is the text, never a file"))
    add("--top", type=int, default=0, metavar="N", help=t("in --json: the N best tokens at each place too"))
    add("--json", action="store_true", help=t("JSON for programs"))
    add_machine(parser)
    return parser


def scored(engine: Engine, text: str, continuations: list[str], *, top: int) -> list[Scored]:
    """The text's scores, or those of each continuation of it. Errors as for `token_scores`."""
    if not continuations:
        return [Scored(text, 1, token_scores(engine, engine.tokenizer.encode(text), top=top))]
    cut = [continued(engine, text, continuation) for continuation in continuations]  # all are checked first
    return [
        Scored(continuation, start, token_scores(engine, ids, top=top))
        for continuation, (ids, start) in zip(continuations, cut, strict=True)
    ]


def show_text(vocabulary: Vocabulary, found: Scored) -> None:
    """In a terminal: the text, each token the redder the less it was expected."""
    if not is_terminal():
        return
    from rich.console import Console
    from rich.text import Text

    line = Text()
    for at, token_id in enumerate(found.scores.ids):
        text = bare(vocabulary.token_bytes(token_id))
        line.append(text, style_of(float(found.scores.logprobs[at]), given=at < found.start))
        if text.endswith("\\n"):
            line.append("\n")
    Console(highlight=False, width=columns()).print(line, end="\n\n")


def style_of(logprob: float, *, given: bool) -> str:
    """The colour of a token; what is given has none of its own."""
    if given:
        return "dim"
    return STYLES[sum(-logprob / LN2 >= bits for bits in STYLE_BITS)]


def table(vocabulary: Vocabulary, found: Scored) -> list[str]:
    """A line for each token: place, text, id, log-probability, probability, rank, and its surprisal drawn."""
    cells = min(max(columns() - 62, 8), 30)
    lines = [
        f"{right('#', 6)} {left(t('token'), cells)} {right(t('id'), 7)} {right('logprob', 9)} "
        f"{right('p', 9)} {right(t('rank'), 7)}  {t('surprisal')}"
    ]
    for at in range(found.start - 1 if found.start == 1 else found.start, len(found.scores.ids)):
        token_id = found.scores.ids[at]
        line = f"{at:6} {left(quoted(vocabulary.token_bytes(token_id)), cells)} {token_id:7}"
        if at >= found.start:
            logprob = float(found.scores.logprobs[at])
            line += f" {logprob:9.3f} {right(percent(math.exp(logprob)), 9)} {found.scores.ranks[at]:7}"
            line += "  " + bar(min(-logprob / LN2 / 16, 1.0), 16)
        lines.append(line.rstrip())
    return lines


def summary(vocabulary: Vocabulary, found: Scored) -> str:
    """`8 tokens scored: logprob -25.31, perplexity 23.66, 0.98 bits per byte`"""
    return t(
        "{n} tokens scored: logprob {total}, perplexity {perplexity}, {bits} bits per byte",
        n=len(found.logprobs),
        total=f"{found.total:.3f}",
        perplexity=f"{found.perplexity:.3f}",
        bits=f"{-found.total / LN2 / num_bytes(vocabulary, found):.3f}",
    )


def num_bytes(vocabulary: Vocabulary, found: Scored) -> int:
    """What the scored tokens spell, at least 1."""
    return max(sum(len(vocabulary.token_bytes(i)) for i in found.scores.ids[found.start :]), 1)


def ranking(found: list[Scored]) -> list[str]:
    """The continuations, the likeliest first; `share`: each one's part of their probabilities together."""
    shares = shares_of(found)
    order = sorted(range(len(found)), key=lambda i: -found[i].total)
    cells = max(columns() - 50, 12)
    lines = [
        f"{left(t('continuation'), cells)} {right('logprob', 10)} {right(t('a token'), 9)} "
        f"{right(t('tokens'), 6)} {right(t('share'), 8)}"
    ]
    for i in order:
        one = found[i]
        lines.append(
            f"{left(quoted(one.text.encode()), cells)} {one.total:10.3f} "
            f"{one.total / len(one.logprobs):9.3f} {len(one.logprobs):6} {right(percent(shares[i]), 8)}"
        )
    return lines


def shares_of(found: list[Scored]) -> list[float]:
    """Each one's probability divided by the sum of all."""
    totals = np.array([one.total for one in found])
    if not np.isfinite(totals.max()):
        return [0.0] * len(found)
    weights = np.exp(totals - totals.max())
    shares: list[float] = (weights / weights.sum()).tolist()
    return shares


def record_of(vocabulary: Vocabulary, found: Scored) -> dict[str, Any]:
    """One text for --json; `content` as in OpenAI's logprobs, with id and rank. An infinity is null."""
    scores = found.scores

    def named(token_id: int, logprob: float) -> dict[str, Any]:
        raw = vocabulary.token_bytes(token_id)
        return {
            "token": raw.decode(errors="replace"),
            "bytes": list(raw),
            "logprob": finite(logprob),
            "token_id": token_id,
        }

    return {
        "text": found.text,
        "tokens": len(found.logprobs),
        "total_logprob": finite(found.total),
        "perplexity": finite(found.perplexity),
        "bits_per_byte": finite(-found.total / LN2 / num_bytes(vocabulary, found)),
        "given_ids": list(scores.ids[: found.start]),
        "content": [
            {
                **named(scores.ids[at], float(scores.logprobs[at])),
                "rank": int(scores.ranks[at]),
                "top_logprobs": [named(*best) for best in scores.top[at]],
            }
            for at in range(found.start, len(scores.ids))
        ],
    }


def finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None
