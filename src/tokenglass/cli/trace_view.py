"""Draws the decision behind a token: plain lines in a pipe or file, bars and bold in a terminal.

    step 4  position 39  id 260  " the"
      rank 1  surprisal 0.68 bits  entropy 3.83 bits  decode 5.1 ms  KV 899 kB
      temperature 0.7
      top_p 0.9 leaves 12 with 0.9018 of the mass
    > 1     260  raw 0.6227  final 0.9310  logit  17.91  " the"
      2     253  raw 0.0711  final 0.0421  logit  15.74  " a"
      rest       raw 0.3062  final 0.0269

raw: the model's own probability; final: after all stages, what the draw was made from. A token that is part
of a character shows its bytes: <e5 a4>.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TextIO

from tokenglass.cli.columns import bar, clip, left, quoted
from tokenglass.cli.language import t
from tokenglass.cli.output import CONTROLS
from tokenglass.sampling import Sampling
from tokenglass.trace import TokenEvent

BITS = 1.4426950408889634  # in a nat
BAR_COLUMNS = 12
LABEL_COLUMNS = 32
Line = tuple[str, float | None, str]  # text, length of its bar (0 … 1; None: it has none), the rest after it


def trace_printer(sampling: Sampling, stream: TextIO | None = None) -> Callable[[TokenEvent], None]:
    """A function that draws events on stderr (or `stream`), fit for where that goes."""
    stream = stream or sys.stderr
    if not stream.isatty():
        return lambda event: _print_plain(event, sampling, stream)
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False)

    def draw(event: TokenEvent) -> None:
        for number, (text, share, after) in enumerate(step_lines(event, sampling)):
            line = Text(text.translate(CONTROLS), "bold" if number == 0 or text.startswith(">") else "")
            if share is not None:
                line.append(f"  {left(bar(share, BAR_COLUMNS), BAR_COLUMNS)}", "cyan")
            line.append(after)
            console.print(line, no_wrap=True, overflow="ellipsis")

    return draw


def _print_plain(event: TokenEvent, sampling: Sampling, stream: TextIO) -> None:
    for text, _, after in step_lines(event, sampling):
        print(f"{text}{after}".translate(CONTROLS), file=stream)
    stream.flush()


def step_lines(event: TokenEvent, sampling: Sampling) -> list[Line]:
    """The lines of one step; nothing in them can move a cursor or begin another line."""
    decision = event.decision
    head = t(
        "step {n}  position {position}  id {id}",
        n=event.index + 1,
        position=event.position,
        id=decision.token_id,
    )
    surprise = t(
        "rank {rank}  surprisal {surprisal:.2f} bits  entropy {entropy:.2f} bits",
        rank=decision.rank,
        surprisal=decision.surprisal_bits,
        entropy=decision.entropy * BITS,
    )
    cost = f"{t(event.phase)} {event.step_s * 1e3:.1f} ms  KV {kilobytes(event.kv_bytes)}"
    raw, final = t("raw"), t("final")
    return [
        (head, None, f"  {label(event.token_bytes)}"),
        (f"  {surprise}  {cost}", None, ""),
        *((f"  {line}", None, "") for line in stage_lines(event, sampling)),
        *(candidate_line(event, place) for place in range(len(decision.top))),
        (
            f"  {left(t('rest'), 10)}  {raw} {decision.rest_raw_p:.4f}  {final} {decision.rest_p:.4f}",
            None,
            "",
        ),
    ]


def candidate_line(event: TokenEvent, place: int) -> Line:
    """One token that could have come; the chosen one has a mark and its rank, wherever that is."""
    candidate = event.decision.top[place]
    is_chosen = candidate.token_id == event.decision.token_id
    mark, rank = (">", event.decision.rank) if is_chosen else (" ", place + 1)
    text = (
        f"{mark} {rank:<4}{candidate.token_id:>6}  {t('raw')} {candidate.raw_p:.4f}  "
        f"{t('final')} {candidate.p:.4f}  logit {candidate.logit:6.2f}"
    )
    return text, candidate.p, f"  {label(event.top_bytes[place])}" if event.top_bytes else ""


def stage_lines(event: TokenEvent, sampling: Sampling) -> list[str]:
    """The stages that were on, in their order, with what each one left."""
    edits = [t("bias and penalties first")] if sampling.has_edits else []
    if sampling.is_greedy:
        return [*edits, t("greedy: the best token, nothing is drawn")]
    stages = [
        t(
            "{name} {setting:g} leaves {n} with {mass:.4f} of the mass",
            name=stage.name,
            setting=stage.setting,
            n=stage.survivors,
            mass=stage.mass,
        )
        for stage in event.decision.stages
    ]
    return [*edits, t("temperature {temperature:g}", temperature=sampling.temperature), *stages]


def label(raw: bytes) -> str:
    """A token in quotes, its invisible characters as escapes, cut with "…" where it is long."""
    return clip(quoted(raw), LABEL_COLUMNS)


def kilobytes(num_bytes: int) -> str:
    """`899 kB`, and from ten thousand on `12.3 MB`."""
    return f"{num_bytes / 1e3:.0f} kB" if num_bytes < 10_000_000 else f"{num_bytes / 1e6:.1f} MB"
