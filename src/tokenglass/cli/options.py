"""The options of `tokenglass run`: their names, their defaults, and the record they become."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenglass.cli.model_options import ModelOptions, add_machine, add_model
from tokenglass.cli.parser import Parser
from tokenglass.cli.prompt import add_template, add_truncation, check_form
from tokenglass.cli.sampling_options import add_sampling, sampling_of
from tokenglass.engine.context import Truncate
from tokenglass.errors import ParameterError
from tokenglass.sampling import Sampling
from tokenglass.sampling.params import check_integer

MAX_TOKENS = 256
TRACE_TOP = 5
EPILOG = (
    "The answer goes to stdout, everything else to stderr. At temperature 0 the answer is always the same."
)


@dataclass(frozen=True, kw_only=True)
class RunOptions(ModelOptions):
    """What was asked on the command line. ParameterError: two options that contradict each other."""

    prompt: str | None  # None and "-": read it from stdin
    raw: bool
    system: str | None
    tools: list[dict[str, Any]] | None
    documents: list[dict[str, Any]] | None
    template_args: dict[str, Any] | None
    preset: str | None
    sampling: Sampling
    seed: int | None  # as it was given; `sampling` has the one that is used
    answers: int
    max_tokens: int
    truncate: Truncate | None
    reserve: int | None
    min_tokens: int
    stop: tuple[str, ...]
    ignore_eos: bool
    use_cache: bool
    trace: bool
    trace_file: Path | None
    trace_top: int | None  # None: nobody asks why
    slow: float | None  # tokens per second
    json: bool
    verbose: bool
    with_prompts: bool

    def __post_init__(self) -> None:
        check_form(vars(self))
        check_integer("answers", self.answers, 1, 1000)
        if self.answers > 1 and self.trace_file:
            raise ParameterError("--trace-file", "holds one answer", remedy="Leave out -n")
        if self.answers > 1 and self.slow:
            raise ParameterError("--slow", "is for watching one answer", remedy="Leave out -n")
        if self.trace_top is not None and not (self.trace or self.trace_file):
            raise ParameterError("--trace-top", "shows nothing without --trace or --trace-file")

    @property
    def has_idle_cuts(self) -> bool:
        """Whether something was asked that has an effect only where tokens are drawn."""
        sampling = self.sampling
        cuts = (sampling.top_k, sampling.top_p, sampling.min_p, sampling.typical_p)
        return cuts != (0, 1.0, 0.0, 1.0) or self.seed is not None

    @classmethod
    def read(cls, arguments: list[str]) -> RunOptions:
        """The options of a command line. UsageError: one that is unknown or has no fitting value."""
        values = run_parser().values(arguments)
        values |= {"stop": tuple(values["stop"]), "sampling": sampling_of(values)}
        if values["trace_top"] is None and (values["trace"] or values["trace_file"]):
            values["trace_top"] = TRACE_TOP
        return cls.of(values)


def run_parser() -> Parser:
    """The parser behind `tokenglass run --help`."""
    parser = Parser(
        "run", "Answer a prompt, or continue a text, with a model on this machine.", epilog=EPILOG
    )
    parser.add_argument(
        "prompt", nargs="?", type=utf8, help="what to answer; - or nothing: read it from stdin"
    )
    add_model(parser)
    add = parser.add_argument
    add("--raw", action="store_true", help="continue the text as it is, without the model's chat template")
    add("--system", type=utf8, metavar="TEXT", help="what the model is told before the prompt")
    add_template(parser)
    add_sampling(parser)
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
        help="end before this text or control token; may be given again",
    )
    add("--min-tokens", type=int, default=0, metavar="N", help="at least N tokens, whatever the model says")
    add("--ignore-eos", action="store_true", help="go on where the model ends its answer")
    add("-n", "--answers", type=int, default=1, metavar="N", help="N answers side by side: seed, seed+1, …")
    add_truncation(parser)
    watch = parser.add_argument_group("how it is watched")
    add = watch.add_argument
    add("--trace", action="store_true", help="each step on stderr: candidates, probabilities, stages, times")
    add("--trace-file", type=Path, metavar="FILE", help="each step as a line of JSON (tokenglass replay)")
    add("--trace-top", type=int, metavar="N", help="candidates that a step shows (default: 5)")
    add("--slow", type=rate, metavar="N/s", help="at most N tokens per second; space pauses, q ends")
    add = add_machine(parser).add_argument
    add(
        "--no-cache",
        action="store_false",
        dest="use_cache",
        help="the naive loop: every step computes the whole text again; same answer, much slower",
    )
    add("--json", action="store_true", help="one JSON object at the end, with all settings and timings")
    add("-v", "--verbose", action="store_true", help="also say when the run could not be noted")
    add("--with-prompts", action="store_true", help="keep the prompt in the local notes (tokenglass notes)")
    return parser


def rate(argument: str) -> float:
    """`2/s`, or just `2`, as tokens per second."""
    try:
        tokens_per_s = float(argument.removesuffix("/s"))
    except ValueError:
        tokens_per_s = 0.0
    if not 0.001 <= tokens_per_s <= 1000:
        raise argparse.ArgumentTypeError(f"must be a rate from 0.001/s to 1000/s, like 2/s, not {argument!r}")
    return tokens_per_s


def utf8(argument: str) -> str:
    """An argument as text: its bytes are UTF-8, whatever the locale made of them."""
    try:
        return os.fsencode(argument).decode()
    except UnicodeError:
        raise argparse.ArgumentTypeError("is not UTF-8") from None
