"""`tokenglass run`: a prompt in, the answer out, token by token. The first file of the walk.

Next: `engine/loop.py`, where `stream` steps the model. Left out here: the options (`options.py`), how the
prompt becomes ids (`prompt.py`), the line at the end (`summary.py`).
"""

from __future__ import annotations

import json
from typing import Any

from tokenglass.cli.errors import translated
from tokenglass.cli.journal import note_run
from tokenglass.cli.language import t
from tokenglass.cli.options import RunOptions
from tokenglass.cli.output import say, write
from tokenglass.cli.progress import download_progress
from tokenglass.cli.prompt import encode_prompt, is_chat, read_prompt
from tokenglass.cli.scripts import script_hint
from tokenglass.cli.summary import Answer
from tokenglass.engine import Engine, Piece, Request, load
from tokenglass.errors import TokenglassError
from tokenglass.hub import resolve
from tokenglass.sampling import Sampling

INTERRUPTED = 130


def main(arguments: list[str]) -> int:
    """Streams the answer to stdout and ends with one line on stderr; Ctrl-C ends it early with status 130."""
    options = RunOptions.read(arguments)
    text = read_prompt(options.prompt)
    with download_progress() as progress:
        path = resolve(options.model, progress=progress)
    engine = load(
        path,
        num_threads=options.threads,
        activations=options.activations,
        kv=options.kv,
        context_length=options.context,
    )
    request = ask(engine, options, text)

    pieces: list[Piece] = []
    status = 0
    try:
        for piece in engine.stream(request):
            pieces.append(piece)
            if not options.json:
                write(piece.text)
    except KeyboardInterrupt:
        status = INTERRUPTED
    except TokenglassError:
        if pieces and not options.json:
            write("\n")  # the error gets a line of its own
        raise

    answer = Answer.of(engine, request, pieces)
    if options.json:
        record = answer.record(settings(engine, options, request))
        write(json.dumps({"model": path.name, **record}, ensure_ascii=False) + "\n")
    else:
        if not answer.text.endswith("\n"):
            write("\n")
        say(answer.line())
    note_run(path.name, answer, request, text, options)
    return status


def ask(engine: Engine, options: RunOptions, text: str) -> Request:
    """The request these options make of `text`; what the user should know about it goes to stderr."""
    tokenizer = engine.tokenizer
    chat = is_chat(tokenizer, raw=options.raw, system=options.system)
    request = Request(
        prompt_ids=encode_prompt(tokenizer, text, chat=chat, system=options.system),
        sampling=Sampling(
            temperature=options.temperature, top_k=options.top_k, top_p=options.top_p, seed=options.seed
        ),
        max_tokens=options.max_tokens,
        stop=options.stop,
        continues_text=not chat,
    )
    for note in notes(engine, options, text, chat=chat):
        say(note)
    return request


def notes(engine: Engine, options: RunOptions, text: str, *, chat: bool) -> list[str]:
    """What is worth a line on stderr before the answer begins."""
    form = (
        t("chat, by the model's own template (--raw: the text as it is)")
        if chat
        else t("raw text, no chat template")
    )
    hints = [script_hint(engine.tokenizer, text)]
    if options.temperature == 0 and (options.top_k or options.top_p < 1 or options.seed is not None):
        hints.append(t("--top-k, --top-p and --seed change nothing at temperature 0: add --temperature 0.7"))
    return [form, *map(translated, engine.model.notes), *filter(None, hints)]


def settings(engine: Engine, options: RunOptions, request: Request) -> dict[str, Any]:
    """Every setting as it was really used, defaults and drawn seed included."""
    return {
        "chat": is_chat(engine.tokenizer, raw=options.raw, system=options.system),
        "system": options.system,
        "temperature": request.sampling.temperature,
        "top_k": request.sampling.top_k,
        "top_p": request.sampling.top_p,
        "seed": request.sampling.seed,
        "max_tokens": request.max_tokens,
        "stop": list(request.stop),
        "context_length": engine.context_length,
        "num_threads": engine.model.cpu.num_threads,
        "isa": engine.model.cpu.isa,
        "activations": options.activations,
        "kv": options.kv,
    }
