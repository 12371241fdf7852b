"""Who computes the scores: `--engine`, and what only Transformers wants to know."""

from __future__ import annotations

from argparse import _ArgumentGroup
from collections.abc import Mapping
from typing import Any

ENGINES = ("tokenglass", "transformers")
_NAMES = ("engine", "device", "dtype", "trust_remote_code")


def add_engine(group: _ArgumentGroup) -> None:
    """Adds the options; `engine_of` reads them."""
    add = group.add_argument
    add(
        "--engine",
        choices=ENGINES,
        default="tokenglass",
        help="who computes: tokenglass (default), or transformers for any causal model and for a GPU",
    )
    add(
        "--device",
        default="cpu",
        help="of transformers: cpu (default), cuda, cuda:1, mps",
    )
    add(
        "--dtype",
        choices=("f32", "bf16", "f16"),
        help="of transformers: type of weights and arithmetic (default: as in the files)",
    )
    add(
        "--trust-remote-code",
        action="store_true",
        help="of transformers: let Python files of the model run. They can do whatever you can",
    )


def engine_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """These options as keywords of `engine.load`."""
    return {name: values[name] for name in _NAMES}
