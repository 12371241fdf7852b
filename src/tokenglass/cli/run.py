"""`tokenglass run`: a prompt in, the answer out, token by token. The first file of the walk.

Next: `engine/loop.py`, where `stream` steps the model. Left out here: the options (`options.py`), how the
prompt becomes ids (`prompt.py`), who looks at the pieces as they pass (`watch.py`), several answers
(`side_by_side.py`), the line at the end (`summary.py`).
"""

from __future__ import annotations

import json

from tokenglass.cli.errors import translated
from tokenglass.cli.journal import note_run
from tokenglass.cli.language import t
from tokenglass.cli.model_options import find_model
from tokenglass.cli.options import RunOptions
from tokenglass.cli.output import say, write
from tokenglass.cli.prompt import encode_prompt, is_chat, policy_of, read_prompt, truncation_note
from tokenglass.cli.record import settings
from tokenglass.cli.scripts import loss_hint, script_hint
from tokenglass.cli.side_by_side import run_side_by_side
from tokenglass.cli.summary import Answer
from tokenglass.cli.watch import is_one_stream, watching
from tokenglass.engine import Engine, Piece, Request
from tokenglass.errors import TokenglassError

INTERRUPTED = 130


def main(arguments: list[str]) -> int:
    """Streams the answer to stdout and ends with one line on stderr; Ctrl-C ends it early with status 130."""
    options = RunOptions.read(arguments)
    text = read_prompt(options.prompt, "run")
    path = find_model(options.model)
    engine = options.load(path)
    request, truncated_tokens = ask(engine, options, text)
    if options.answers > 1:
        return run_side_by_side(engine, options, request, path, text)

    is_live = not options.json and not (options.trace and is_one_stream())
    pieces: list[Piece] = []
    status = 0
    try:
        with watching(engine, request, options, path) as watch:
            for piece in engine.stream(request):
                pieces.append(piece)
                if is_live:
                    write(piece.text)
                if not watch.saw(piece):
                    break
    except KeyboardInterrupt:
        status = INTERRUPTED
    except TokenglassError:
        if pieces and is_live:
            write("\n")  # the error gets a line of its own
        raise

    answer = Answer.of(engine, request, pieces)
    if options.json:
        record = answer.record(settings(engine, options, request))
        write(
            json.dumps(
                {"model": path.name, "truncated_tokens": truncated_tokens, **record}, ensure_ascii=False
            )
            + "\n"
        )
    else:
        rest = "" if is_live else answer.text
        write(rest if answer.text.endswith("\n") else rest + "\n")
        say(answer.line())
    note_run(path.name, answer, request, text, options)
    return status


def ask(engine: Engine, options: RunOptions, text: str) -> tuple[Request, int]:
    """(the request these options make of `text`, how many tokens of it did not fit); what the user should
    know about it goes to stderr.
    """
    tokenizer = engine.tokenizer
    chat = is_chat(tokenizer, vars(options))
    policy = policy_of(vars(options), engine.context_length)
    fitted = encode_prompt(tokenizer, text, vars(options), chat=chat, policy=policy)
    request = Request(
        prompt_ids=fitted.ids,
        sampling=options.sampling,
        max_tokens=options.max_tokens,
        min_tokens=options.min_tokens,
        stop=options.stop,
        ignore_eos=options.ignore_eos,
        continues_text=not chat,
        use_cache=options.use_cache,
        trace_top=options.trace_top,
    )
    for note in filter(None, [*notes(engine, options, text, chat=chat), truncation_note(fitted)]):
        say(note)
    return request, fitted.truncated_tokens


def notes(engine: Engine, options: RunOptions, text: str, *, chat: bool) -> list[str]:
    """What is worth a line on stderr before the answer begins."""
    form = (
        t("chat, by the model's own template (--raw: the text as it is)")
        if chat
        else t("raw text, no chat template")
    )
    hints = [script_hint(engine.tokenizer, text), loss_hint(engine.tokenizer, text)]
    if not engine.tokenizer.vocabulary.end_ids:
        hints.append(t("this model has no end token: the answer ends by --max-tokens or --stop"))
    if options.sampling.temperature == 0 and options.has_idle_cuts:
        hints.append(t("--top-k, --top-p and --seed change nothing at temperature 0: add --temperature 0.7"))
    return [form, *map(translated, engine.model.notes), *filter(None, hints)]
