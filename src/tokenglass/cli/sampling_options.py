"""The options that say how each token is chosen, for all verbs that draw; and the `Sampling` they become."""

from __future__ import annotations

import argparse
from typing import Any

from tokenglass.cli.parser import Parser
from tokenglass.cli.presets import PRESETS
from tokenglass.sampling import Sampling

NAMES = (
    "temperature", "top_k", "top_p", "min_p", "typical_p",
    "repetition_penalty", "presence_penalty", "frequency_penalty", "seed",
)  # fmt: skip


def add_sampling(parser: Parser) -> None:
    """Adds the group of options; their values are None where they were not given."""
    add = parser.add_argument_group("how each token is chosen").add_argument
    add("--preset", choices=tuple(PRESETS), help="settings for a kind of text (tokenglass presets explains)")
    add("--temperature", type=float, metavar="T", help="0 takes the best token (default); 0.7 varies")
    add("--top-k", type=int, metavar="K", help="choose among the K best tokens; 0: among all (default)")
    add("--top-p", type=float, metavar="P", help="among the best that reach this sum; 1: all (default)")
    add("--min-p", type=float, metavar="P", help="with at least P times the best one's probability; 0: all")
    add("--typical-p", type=float, metavar="P", help="among the most typical that reach this sum; 1: all")
    add("--repetition-penalty", type=float, metavar="R", help="above 1: weakens every token seen; 1: off")
    add("--presence-penalty", type=float, metavar="A", help="taken from tokens of the answer; 0: off")
    add("--frequency-penalty", type=float, metavar="A", help="the same, for each time they came; 0: off")
    add(
        "--logit-bias",
        type=bias,
        action="append",
        default=[],
        metavar="ID=VALUE",
        help="added to one token's logit, -100 (never) to 100; may be given again",
    )
    add("--seed", type=int, metavar="N", help="the same seed gives the same answer; drawn when not given")


def sampling_of(values: dict[str, Any]) -> Sampling:
    """The settings of a command line: what was given, else the preset's, else off. ParameterError."""
    preset = PRESETS.get(values["preset"] or "")
    settings: dict[str, Any] = {"temperature": preset.temperature, "top_p": preset.top_p} if preset else {}
    settings |= {name: values[name] for name in NAMES if values[name] is not None}
    return Sampling(**settings, logit_bias=dict(values["logit_bias"]))


def bias(argument: str) -> tuple[int, float]:
    """`42=-100` as (42, -100.0)."""
    token_id, _, value = argument.partition("=")
    try:
        return int(token_id), float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be ID=VALUE, like 42=-100, not {argument!r}") from None
