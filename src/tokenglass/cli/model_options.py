"""The options that say which model runs and how, for every verb that runs one; and the engine they become."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tokenglass.cli.parser import Parser
from tokenglass.cli.progress import download_progress
from tokenglass.engine import Engine, load
from tokenglass.engine.load import (
    DTYPES,
    ENGINES,
    MAX_ROWS,
    Activations,
    DType,
    EngineName,
    KVType,
    WeightForm,
)
from tokenglass.formats.view import WEIGHT_FORMS
from tokenglass.hub import DEFAULT_MODEL, resolve


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Which model, and how it is run. What they mean, and what is refused: `engine.load`."""

    model: str
    context: int | None
    threads: int | None
    activations: Activations
    kv: KVType
    weights: WeightForm | None
    engine: EngineName
    device: str
    dtype: DType | None
    trust_remote_code: bool

    @classmethod
    def of(cls, values: dict[str, Any]) -> Self:
        """The record of a verb's values, which may have more than its fields."""
        return cls(**{name: values[name] for name in cls.__dataclass_fields__})

    def load(self, path: Path, *, max_rows: int = MAX_ROWS) -> Engine:
        """The engine for the file or folder that `find_model` gave. ModelFileError, ParameterError."""
        return load(
            path,
            num_threads=self.threads,
            activations=self.activations,
            kv=self.kv,
            context_length=self.context,
            weights=self.weights,
            max_rows=max_rows,
            engine=self.engine,
            device=self.device,
            dtype=self.dtype,
            trust_remote_code=self.trust_remote_code,
        )


def find_model(name: str) -> Path:
    """The file or folder that a user named, downloaded with its progress shown where it must be. HubError."""
    with download_progress() as progress:
        return resolve(name, progress=progress)


def add_model(parser: Parser) -> None:
    """Adds `--model`."""
    parser.add_argument(
        "-m",
        "--model",
        default=DEFAULT_MODEL,
        help="a .gguf file, a folder, or a name (default: %(default)s)",
    )


def add_machine(parser: Parser) -> argparse._ArgumentGroup:
    """Adds the group "how it runs", and gives it for what one verb has more."""
    group = parser.add_argument_group("how it runs")
    add = group.add_argument
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
        choices=("f16", "f32", "q8"),
        default="f16",
        help="type of the cached keys and values (default: f16)",
    )
    add("--weights", choices=WEIGHT_FORMS, help="load the matrices in this form (default: as they are)")
    add(
        "--engine",
        choices=ENGINES,
        default="tokenglass",
        help="who computes: tokenglass (default), or transformers for any causal model and for a GPU",
    )
    add("--device", default="cpu", help="of transformers: cpu (default), cuda, cuda:1, mps")
    add(
        "--dtype",
        choices=DTYPES,
        help="of transformers: type of weights and arithmetic (default: as in the files)",
    )
    add(
        "--trust-remote-code",
        action="store_true",
        help="of transformers: let Python files of the model run. They can do whatever you can",
    )
    return group
