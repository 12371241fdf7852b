"""`tokenglass run -n 3`: several answers to one prompt, from seeds that follow each other, run side by side.

All are submitted before the first is read, so each step of the engine makes one token of every answer. The
first is shown as it comes; the others are ready, or nearly, when it ends.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tokenglass.cli.journal import note_run
from tokenglass.cli.language import t
from tokenglass.cli.options import RunOptions
from tokenglass.cli.output import say, write
from tokenglass.cli.record import settings
from tokenglass.cli.summary import Answer
from tokenglass.cli.watch import is_one_stream, watching
from tokenglass.engine import Engine, Piece, Request

INTERRUPTED = 130


def run_side_by_side(engine: Engine, options: RunOptions, request: Request, path: Path, text: str) -> int:
    """Prints each answer under its label, or with --json as one object a line.

    Ctrl-C (status 130) ends the answer that is shown, which is kept, and those after it.
    """
    requests = [with_seed(request, number) for number in range(options.answers)]
    if request.sampling.is_greedy:
        say(t("all answers are the same without randomness: add --temperature 0.7"))
    answers: list[Answer] = []
    status = 0
    streams = [engine.stream(request) for request in requests]
    for number, (request, stream) in enumerate(zip(requests, streams, strict=True), start=1):
        if not options.json:
            seed = request.sampling.seed
            label = t("answer {n} of {total}, seed {seed}", n=number, total=len(requests), seed=seed)
            write(f"{'' if number == 1 else chr(10)}--- {label} ---\n")
        answer, status = show(engine, options, request, path, stream)
        note_run(path.name, answer, request, text, options)
        answers.append(answer)
        if status:
            break
    if not options.json:
        say(line(answers))
    return status


def show(
    engine: Engine, options: RunOptions, request: Request, path: Path, stream: Iterator[Piece]
) -> tuple[Answer, int]:
    """Prints one answer, as it comes where that is possible. The status: 0, or 130 where Ctrl-C ended it."""
    is_live = not (options.json or (options.trace and is_one_stream()))
    pieces: list[Piece] = []
    status = 0
    try:
        with watching(engine, request, options, path) as watch:
            for piece in stream:
                pieces.append(piece)
                if is_live:
                    write(piece.text)
                watch.saw(piece)
    except KeyboardInterrupt:
        status = INTERRUPTED
    answer = Answer.of(engine, request, pieces)
    if options.json:
        record = answer.record(settings(engine, options, request))
        write(json.dumps({"model": path.name, **record}, ensure_ascii=False) + "\n")
    else:
        rest = "" if is_live else answer.text
        write(rest if answer.text.endswith("\n") else rest + "\n")
    return answer, status


def with_seed(request: Request, number: int) -> Request:
    """The `number`th answer's request: its seed is the first one's plus `number`."""
    sampling = request.sampling
    assert sampling.seed is not None, "Sampling draws a seed when it gets none"
    return replace(request, sampling=replace(sampling, seed=(sampling.seed + number) % (1 << 64)))


def line(answers: list[Answer]) -> str:
    """`3 answers, 192 output tokens in 1.2 s, 160 tokens/s together | sha256 … … …`"""
    num_tokens = sum(len(answer.token_ids) for answer in answers)
    total_s = max(answer.timings.finished_s for answer in answers) - answers[0].timings.submitted_s
    numbers = t(
        "{n} answers, {tokens} output tokens in {seconds:.2f} s, {rate:.0f} tokens/s together",
        n=len(answers),
        tokens=num_tokens,
        seconds=total_s,
        rate=num_tokens / max(total_s, 1e-9),
    )
    return f"{numbers} | sha256 {' '.join(answer.sha256 for answer in answers)}"
