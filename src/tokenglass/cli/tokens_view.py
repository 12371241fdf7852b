"""What `tokenglass tokens` shows of texts already cut: pieces, a line for each token, costs, and --json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tokenglass.cli.columns import bare, clip, columns, escaped, is_terminal, left, quoted, right, width
from tokenglass.cli.language import t
from tokenglass.cli.output import write
from tokenglass.tokens import Tokenizer
from tokenglass.tokens.spans import Spans, estimate

COLOURS = ("cyan", "yellow", "magenta", "green", "bright_blue")


@dataclass(frozen=True)
class Encoded:
    """One text in one model's tokens."""

    name: str
    tokenizer: Tokenizer
    context_length: int | None
    ids: list[int]  # what is shown
    spans: Spans
    num_text: int  # without special tokens
    num_raw: int  # with those a raw text gets (BOS)
    num_chat: int | None  # as one turn of a chat; None: no template, or not counted

    @property
    def pieces(self) -> list[bytes]:
        return [self.tokenizer.vocabulary.token_bytes(i) for i in self.ids]


def show_pieces(result: Encoded, limit: int) -> None:
    """The text with its cuts: coloured in a terminal, and `│` between tokens always."""
    vocabulary = result.tokenizer.vocabulary
    texts = [bare(piece) for piece in result.pieces[:limit]]
    if is_terminal():
        from rich.console import Console
        from rich.text import Text

        line = Text()
        for i, (token_id, text) in enumerate(zip(result.ids, texts, strict=False)):
            is_special = vocabulary.is_control(token_id)
            line.append(text, "bold reverse" if is_special else COLOURS[i % len(COLOURS)])
            line.append("\n" if text.endswith("\\n") else "│", "dim")
        Console(highlight=False, width=columns()).print(line)
    elif texts:
        write("│".join(texts) + "\n")


def show_table(result: Encoded, limit: int) -> None:
    """A line for each token: number, id, text, bytes, characters."""
    if not result.ids:
        return
    cells = max(12, columns() - 48)
    write(
        f"\n{right('#', 6)} {right(t('id'), 7)}  {left(t('token'), cells)} {left(t('bytes'), 14)} "
        f"{t('characters')}\n"
    )
    lines = []
    for i, (token_id, piece) in enumerate(zip(result.ids[:limit], result.pieces, strict=False)):
        lines.append(
            f"{i:6} {token_id:7}  {left(quoted(piece), cells)} {left(piece.hex(' '), 14)} "
            f"{place(result, i)}".rstrip()
        )
    write("\n".join(lines) + "\n")
    if len(result.ids) > limit:
        write(t("… {n} more (--limit 0 lists all, --json holds them)", n=len(result.ids) - limit) + "\n")


def place(result: Encoded, i: int) -> str:
    """Where token i lies: `4:7`, or `4 天 2/3` for a part of a character."""
    if result.tokenizer.vocabulary.is_control(result.ids[i]):
        return t("special")
    chars = result.spans.chars(i)
    if chars is None:
        return "-"
    parts = ", ".join(str(part) for part in result.spans.parts(i))
    where = f"{chars[0]}" if chars[1] == chars[0] + 1 else f"{chars[0]}:{chars[1]}"
    return f"{where} {escaped(parts)}" if parts else where


def summary(text: str, results: list[Encoded]) -> str:
    """Counts and costs, one column for each model."""
    few, most = estimate(text)
    rows: list[list[str]] = []
    if len(results) > 1:
        rows.append(["", *(result.name for result in results)])
    rows += [
        [t("tokens of the text"), *(f"{result.num_text:,}" for result in results)],
        [t("with special tokens, raw"), *(f"{result.num_raw:,}" for result in results)],
        [t("with special tokens, as a chat"), *(_count(result.num_chat) for result in results)],
        [t("share of the window"), *(_window(result) for result in results)],
        [t("characters a token"), *(_ratio(len(text), result.num_text) for result in results)],
    ]
    by_script = [
        (result.spans if result.spans.text == text else _plain_spans(result, text)).by_script()
        for result in results
    ]
    scripts = list(dict.fromkeys(script for costs in by_script for script in costs))
    for script in scripts:
        num = next(costs[script][0] for costs in by_script if script in costs)
        rows.append(
            [
                f"  {t(script)} ({num:,})",
                *(_ratio(*costs[script]) if script in costs else "-" for costs in by_script),
            ]
        )
    first = max(width(row[0]) for row in rows)
    # Names of models are cut so that the table fits; numbers are short.
    cells = max(9, min(24, (columns() - first) // len(results) - 2))
    lines = [
        left(row[0], first) + "".join("  " + right(clip(value, cells), cells) for value in row[1:])
        for row in rows
    ]
    lines.insert(
        0,
        t("{chars} characters, {bytes} bytes", chars=f"{len(text):,}", bytes=f"{len(text.encode()):,}"),
    )
    lines.append(t("rule of thumb: {few} to {most} tokens", few=f"{few:,}", most=f"{most:,}"))
    lines.append("  " + t("(an estimate, no count: 3-4 English or 1-2 Chinese characters a token)"))
    return "\n".join(lines)


def estimated(name: str, text: str) -> str:
    """What a model is said to need whose tokenizer is not to be had."""
    few, most = estimate(text)
    rule = t("(an estimate, no count: 3-4 English or 1-2 Chinese characters a token)")
    return (
        t("{name}: rule of thumb: {few} to {most} tokens", name=name, few=f"{few:,}", most=f"{most:,}")
        + f"\n  {rule}"
    )


def record(text: str, results: list[Encoded], absent: dict[str, str]) -> dict[str, Any]:
    """The object that --json prints. `start` and `end` count characters; `parts`: bytes of a character.
    `not_counted`: models for which the estimate has to do, and why.
    """
    few, most = estimate(text)
    return {
        "num_chars": len(text),
        "num_bytes": len(text.encode()),
        "estimate": {"fewest": few, "most": most, "rule": "English 3-4, Chinese 1-2 characters a token"},
        "models": [_model_record(result, text) for result in results],
        "not_counted": absent,
    }


def _model_record(result: Encoded, text: str) -> dict[str, Any]:
    tokens = []
    for i, (token_id, piece) in enumerate(zip(result.ids, result.pieces, strict=True)):
        start, end = result.spans.chars(i) or (None, None)
        tokens.append(
            {
                "id": token_id,
                "text": piece.decode(errors="replace"),
                "bytes": list(piece),
                "start": start,
                "end": end,
                "parts": [vars(part) for part in result.spans.parts(i)],
                "special": result.tokenizer.vocabulary.is_control(token_id),
            }
        )
    spans = result.spans if result.spans.text == text else _plain_spans(result, text)
    return {
        "model": result.name,
        "num_tokens": result.num_text,
        "num_tokens_raw": result.num_raw,
        "num_tokens_chat": result.num_chat,
        "context_length": result.context_length,
        "is_exact": result.spans.is_exact,
        "scripts": {
            script: {"chars": chars, "tokens": tokens_}
            for script, (chars, tokens_) in spans.by_script().items()
        },
        "tokens": tokens,
    }


def _plain_spans(result: Encoded, text: str) -> Spans:
    """The text alone: costs by script leave the chat's own words out."""
    vocabulary = result.tokenizer.vocabulary
    return Spans(text, [vocabulary.token_bytes(i) for i in result.tokenizer.encode(text, bos=False)])


def _count(num: int | None) -> str:
    return "-" if num is None else f"{num:,}"


def _ratio(chars: int, tokens: float) -> str:
    return f"{chars / tokens:.2f}" if tokens else "-"


def _window(result: Encoded) -> str:
    if not result.context_length:
        return "-"
    return t(
        "{share} of {window}",
        share=f"{len(result.ids) / result.context_length:.1%}",
        window=f"{result.context_length:,}",
    )
