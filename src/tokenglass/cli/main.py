"""The command `tokenglass`: finds the verb, and turns whatever goes wrong into one line and an exit status.

    0    done                                  130  stopped with Ctrl-C
    1    could not be done                     141  the reader of our output went away (`| head -1`)
    2    asked for something that cannot be

A verb is a module of this package with `main(arguments) -> exit status`, imported only when it is called.
"""

from __future__ import annotations

import signal
import sys
import threading
from importlib import import_module

from tokenglass import __version__
from tokenglass.cli import output
from tokenglass.cli.errors import error_line
from tokenglass.cli.language import choose_language, t
from tokenglass.errors import TokenglassError, UsageError

VERBS = {
    "run": "answer a prompt, or continue a text, with a model on this machine",
    "tokens": "a text as a model sees it: its tokens, their bytes, and what they cost",
    "next": "the distribution of the next token: logit, probability, entropy",
    "score": "how likely a text is, token by token; which continuation is the likelier",
    "perplexity": "the perplexity of a text file, and its bits per byte",
    "embed": "texts as vectors: the model's hidden states, pooled",
    "step": "one token at a time by hand: take the draw, another token, or go back",
    "chat": "talk with a model, turn by turn",
    "models": "models known by name and models stored here: pull, show, remove, share",
    "show": "what a model is: drawn, counted, and whether it fits this machine",
    "convert": "a model into a GGUF file or a folder, its weights as they are or quantised",
    "explain-cache": "what keeping keys and values saves: two loops, side by side",
    "bench": "measure this machine: tokens per second and the share of what it allows",
    "doctor": "whether this machine can run a model, how, and what would make it better",
    "replay": "run a stored trace again and check every token, or show it",
    "presets": "sampling settings for four kinds of text, and why",
    "notes": "what was run and measured here: kept on this machine, sent nowhere",
}


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns its exit status. A user's mistake is printed, never raised."""
    output.prepare_streams()
    end_in_order()
    try:
        try:
            return dispatch(choose_language(sys.argv[1:] if arguments is None else arguments))
        except TokenglassError as error:
            output.say(f"tokenglass: {error_line(error)}")
            return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        output.abandon_streams()
        return 141
    except MemoryError:
        output.say("tokenglass: " + t("there is not enough memory. A smaller --context or model needs less"))
        return 1
    except OSError as error:  # of this machine: no file handles left, a process that cannot start …
        output.say("tokenglass: " + t("the system refused: {reason}", reason=str(error)))
        return 1


def end_in_order() -> None:
    """Lets kill and a closed terminal end the program as Ctrl-C does: children stopped, files left whole."""
    if threading.current_thread() is not threading.main_thread():
        return
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, lambda number, frame: sys.exit(128 + number))


def dispatch(arguments: list[str]) -> int:
    """Calls the verb that the first argument names."""
    match arguments:
        case [verb, *rest] if verb in VERBS:
            status: int = import_module(f"tokenglass.cli.{verb.replace('-', '_')}").main(rest)
        case ["--version" | "-V"]:
            output.write(f"tokenglass {__version__}\n")
            status = 0
        case [] | ["--help" | "-h" | "help"]:
            output.write(usage())
            status = 0
        case [other, *_]:
            raise UsageError(
                f"there is no command {other!r}", remedy=f"{suggestion(other)}See tokenglass --help"
            )
    return status


def usage() -> str:
    """The overview that `tokenglass --help` prints."""
    width = max(map(len, VERBS)) + 2
    lines = [f"  {verb:{width}}{t(what)}" for verb, what in VERBS.items()]
    return "\n".join(
        [
            t("usage: tokenglass COMMAND [options]"),
            "",
            t("A glass-box LLM engine: fast enough to serve, clear enough to see every next token."),
            "",
            *lines,
            "",
            t("tokenglass COMMAND --help says what a command takes; tokenglass --version: which one."),
            t("Everywhere: --lang en or --lang zh, or TOKENGLASS_LANG=zh (中文)."),
            "",
        ]
    )


def suggestion(word: str) -> str:
    """What may have been meant, as a sentence, or nothing."""
    if word.startswith("-"):
        return f"Options follow the command: tokenglass run {word} … "
    from difflib import get_close_matches

    near = get_close_matches(word, VERBS, n=1)
    return f"Did you mean {near[0]}? " if near else f'To answer a prompt: tokenglass run "{word}". '
