"""What `next` and `step` share: the options for model and prompt, and from those to an engine and ids."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenglass.cli.errors import translated
from tokenglass.cli.language import t
from tokenglass.cli.model_options import ModelOptions, add_machine, add_model, find_model
from tokenglass.cli.options import utf8
from tokenglass.cli.output import say
from tokenglass.cli.parser import Parser
from tokenglass.cli.prompt import add_template, check_form, encode_prompt, is_chat
from tokenglass.cli.scripts import loss_hint
from tokenglass.engine import Engine
from tokenglass.sampling.params import check_integer

TOP = 10


@dataclass(frozen=True)
class Opened:
    """A model and a prompt in its ids."""

    path: Path
    engine: Engine
    ids: list[int]
    chat: bool


def add_looking(parser: Parser) -> None:
    """Adds the prompt, the model and how much is shown."""
    add = parser.add_argument
    add("prompt", nargs="?", type=utf8, help=t("the text before the token"))
    add_model(parser)
    add("--raw", action="store_true", help=t("the text as it is, without the model's chat template"))
    add("--system", type=utf8, metavar="TEXT", help=t("what the model is told before the prompt"))
    add("--top", type=int, default=TOP, metavar="N", help=t("show the N best tokens (default: 10)"))
    add("--json", action="store_true", help=t("JSON for programs"))
    add_template(parser)
    add_machine(parser)


def opened(values: dict[str, Any], text: str) -> Opened:
    """The engine and the prompt's ids; what form the prompt has goes to stderr. Errors as for `run`."""
    check_integer("top", values["top"], 1, 1 << 20)
    check_form(values)
    path = find_model(values["model"])
    engine = ModelOptions.of(values).load(path)
    chat = is_chat(engine.tokenizer, values)
    if chat:
        say(t("chat, by the model's own template (--raw: the text as it is)"))
    else:
        say(t("raw text, no chat template"))
    notes = [*map(translated, engine.model.notes), loss_hint(engine.tokenizer, text)]
    for note in filter(None, notes):
        say(note)
    ids = encode_prompt(engine.tokenizer, text, values, chat=chat).ids
    return Opened(path, engine, ids, chat)
