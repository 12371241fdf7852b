"""The options of `tokenglass run`: their names, their defaults, and the record they become."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from typing import Literal

from tokenglass.cli.parser import Parser
from tokenglass.errors import ParameterError
from tokenglass.hub import DEFAULT_MODEL

MAX_TOKENS = 256
EPILOG = (
    "The answer goes to stdout, everything else to stderr. At temperature 0 the answer is always the same."
)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What was asked on the command line. ParameterError: two options that contradict each other."""

    prompt: str | None  # None and "-": read it from stdin
    model: str
    raw: bool
    system: str | None
    temperature: float
    top_k: int
    top_p: float
    seed: int | None
    max_tokens: int
    stop: tuple[str, ...]
    context: int | None
    threads: int | None
    activations: Literal["int8", "f32"]
    kv: Literal["f16", "f32"]
    json: bool
    verbose: bool
    with_prompts: bool

    def __post_init__(self) -> None:
        if self.raw and self.system is not None:
            raise ParameterError("--system", "is for chat, and --raw continues the text as it is")

    @classmethod
    def read(cls, arguments: list[str]) -> RunOptions:
        """The options of a command line. UsageError: one that is unknown or has no fitting value."""
        values = run_parser().values(arguments)
        return cls(**{**values, "stop": tuple(values["stop"])})


def run_parser() -> Parser:
    """The parser behind `tokenglass run --help`."""
    parser = Parser(
        "run", "Answer a prompt, or continue a text, with a model on this machine.", epilog=EPILOG
    )
    parser.add_argument(
        "prompt", nargs="?", type=utf8, help="what to answer; - or nothing: read it from stdin"
    )
    add = parser.add_argument
    add("-m", "--model", default=DEFAULT_MODEL, help="path of a .gguf file, or a name (default: %(default)s)")
    add("--raw", action="store_true", help="continue the text as it is, without the model's chat template")
    add("--system", type=utf8, metavar="TEXT", help="what the model is told before the prompt")
    choice = parser.add_argument_group("how each token is chosen")
    add = choice.add_argument
    add(
        "--temperature",
        type=float,
        default=0.0,
        metavar="T",
        help="0 takes the best token (default); 0.7 varies",
    )
    add(
        "--top-k",
        type=int,
        default=0,
        metavar="K",
        help="choose among the K best tokens; 0: among all (default)",
    )
    add(
        "--top-p",
        type=float,
        default=1.0,
        metavar="P",
        help="among the best that reach this sum; 1: all (default)",
    )
    add("--seed", type=int, metavar="N", help="the same seed gives the same answer; drawn when not given")
    end = parser.add_argument_group("where the answer ends")
    add = end.add_argument
    add(
        "--max-tokens",
        type=int,
        default=MAX_TOKENS,
        metavar="N",
        help="at most N tokens (default: %(default)s)",
    )
    add(
        "--stop",
        type=utf8,
        action="append",
        default=[],
        metavar="TEXT",
        help="end before this text; may be given again",
    )
    machine = parser.add_argument_group("how it runs")
    add = machine.add_argument
    add(
        "--context",
        type=int,
        metavar="N",
        help="tokens to keep room for (default: what the model was made for)",
    )
    add("--threads", type=int, metavar="N", help="default: the processors this process may use")
    add("--activations", choices=("int8", "f32"), default="int8", help="int8: fast (default); f32: exact")
    add(
        "--kv",
        choices=("f16", "f32"),
        default="f16",
        help="type of the cached keys and values (default: f16)",
    )
    add("--json", action="store_true", help="one JSON object at the end, with all settings and timings")
    add("-v", "--verbose", action="store_true", help="also say when the run could not be noted")
    add("--with-prompts", action="store_true", help="keep the prompt in the local notes (tokenglass notes)")
    return parser


def utf8(argument: str) -> str:
    """An argument as text: its bytes are UTF-8, whatever the locale made of them."""
    try:
        return os.fsencode(argument).decode()
    except UnicodeError:
        raise argparse.ArgumentTypeError("is not UTF-8") from None
