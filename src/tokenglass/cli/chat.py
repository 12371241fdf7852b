"""`tokenglass chat`: a conversation in a terminal, or line by line through a pipe.

Answers go to stdout, everything else to stderr. Next: `chat_session.py`, what a turn does;
`chat_commands.py`, the lines that begin with a slash; `engine/conversation.py`, why a long chat does not get
slower to begin.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module

from tokenglass.cli.chat_commands import run_command
from tokenglass.cli.chat_session import Session
from tokenglass.cli.errors import error_line, translated
from tokenglass.cli.language import t
from tokenglass.cli.model_options import ModelOptions, add_machine, add_model, find_model
from tokenglass.cli.options import utf8
from tokenglass.cli.output import say, write
from tokenglass.cli.parser import Parser
from tokenglass.cli.prompt import MAX_PROMPT_BYTES, add_template, add_truncation, template_of
from tokenglass.cli.sampling_options import add_sampling, sampling_of
from tokenglass.errors import ChatTemplateError, TokenglassError, UsageError
from tokenglass.hub import model_name

MAX_TOKENS = 512
FAILED = 1
INTERRUPTED = 130
EPILOG = (
    "Lines that begin with / are commands (/help lists them); // begins a message with a slash. Ctrl-C stops "
    "an answer and keeps what was said; Ctrl-D ends the chat."
)


def main(arguments: list[str]) -> int:
    """Answers line after line. A mistake costs one line on stderr and never the conversation.

    Returns 1 where a line from a pipe could not be done, as nobody may have read stderr; 130 after Ctrl-C
    there. In a terminal Ctrl-C only stops the answer, and the status is 0.
    """
    options = chat_parser().values(arguments)
    path = find_model(options["model"])
    engine = ModelOptions.of(options).load(path)
    if not engine.tokenizer.chat.exists:
        raise ChatTemplateError(
            "This model has no chat template", remedy="Give it plain text: tokenglass run --raw"
        )
    for note in map(translated, engine.model.notes):
        say(note)
    session = Session(
        engine,
        path.name,
        sampling=sampling_of(options),
        is_seed_given=options["seed"] is not None,
        max_tokens=options["max_tokens"],
        system=options["system"],
        is_json=options["json"],
        template=template_of(options),
        truncation=options,
    )
    is_terminal = sys.stdin is not None and sys.stdin.isatty()
    if is_terminal:
        window = engine.context_length
        say(
            t(
                "{model}, window of {window} tokens. /help lists the commands",
                model=model_name(path),
                window=window,
            )
        )
    num_failed = 0
    for line in typed_lines() if is_terminal else piped_lines():
        try:
            if isinstance(line, TokenglassError):
                raise line
            if not take(session, line):
                break
        except TokenglassError as error:
            num_failed += 1
            say(f"tokenglass: {error_line(error)}")
        except KeyboardInterrupt:
            if not is_terminal:
                return INTERRUPTED
    return FAILED if num_failed and not is_terminal else 0


def take(session: Session, line: str) -> bool:
    """Does what a line says; False: the chat is over. KeyboardInterrupt: the answer was stopped."""
    if line.startswith("/") and not line.startswith("//"):
        return run_command(session, line)
    if line.strip():
        session.ask(line.removeprefix("/") if line.startswith("//") else line)
    return True


def typed_lines() -> Iterator[str]:
    """What is typed, with the editing and history of `readline` where Python has it; Ctrl-D ends."""
    with suppress(ImportError):
        import_module("readline")  # `input` uses it from now on
    is_shown = sys.stdout.isatty()
    while True:
        try:
            if not is_shown:
                print("> ", end="", file=sys.stderr, flush=True)
            yield input("> " if is_shown else "")
        except EOFError:
            write("\n" if is_shown else "")
            return
        except KeyboardInterrupt:
            say("")
            say(t("/quit or Ctrl-D ends the chat"))
        except UnicodeDecodeError:
            say(t("the line is not UTF-8 and was left out"))


def piped_lines() -> Iterator[str | TokenglassError]:
    """The lines of stdin. In place of one that is too long or not UTF-8: the error that says so."""
    raw = sys.stdin.buffer if sys.stdin is not None else None
    number = 0
    while raw is not None and (line := raw.readline(MAX_PROMPT_BYTES + 1)):
        number += 1
        if len(line) > MAX_PROMPT_BYTES:
            while not line.endswith(b"\n") and (line := raw.readline(1 << 20)):
                pass
            yield UsageError(
                t("line {n} has more than {mb} MB and was left out", n=number, mb=MAX_PROMPT_BYTES >> 20)
            )
            continue
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            yield UsageError(
                t("line {n} is not UTF-8 at byte {byte} and was left out", n=number, byte=error.start)
            )
            continue
        yield text.removesuffix("\n").removesuffix("\r")


def chat_parser() -> Parser:
    """The parser behind `tokenglass chat --help`."""
    parser = Parser("chat", "Talk with a model on this machine, turn by turn.", epilog=EPILOG)
    add_model(parser)
    add = parser.add_argument
    add("--system", type=utf8, metavar="TEXT", help="what the model is told before the prompt")
    add(
        "--max-tokens", type=int, default=MAX_TOKENS, metavar="N", help="of one answer (default: %(default)s)"
    )
    add("--json", action="store_true", help="one JSON object for each answer, on a line of its own")
    add_truncation(parser)
    add_template(parser)
    add_sampling(parser)
    add_machine(parser)
    return parser
