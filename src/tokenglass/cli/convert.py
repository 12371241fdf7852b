"""`tokenglass convert`: a model out of one kind of file into another, its weights as they are or made anew.

A GGUF holds everything. A safetensors file holds the weights alone: config.json and the tokenizer's files
belong beside it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tokenglass.cli.errors import translated
from tokenglass.cli.language import t
from tokenglass.cli.model_options import find_model
from tokenglass.cli.output import say
from tokenglass.cli.parser import Parser
from tokenglass.errors import ParameterError
from tokenglass.formats import ModelSource, open_model
from tokenglass.formats.hf_export import checkpoint_tensors
from tokenglass.formats.hf_folder import FLOATS
from tokenglass.formats.view import WEIGHT_FORMS, ModelView, WeightForm
from tokenglass.formats.write_gguf import write_gguf
from tokenglass.formats.write_safetensors import write_outgoing
from tokenglass.tokens.gguf_keys import gguf_keys

STEP = 25  # percent between two lines
MIN_BYTES = 100_000_000  # a smaller file is written before a line is read


def main(arguments: list[str]) -> int:
    """Writes the file, whole or not at all; what was done goes to stderr."""
    options = convert_parser().values(arguments)
    output: Path = options["output"]
    if output.suffix not in (".gguf", ".safetensors"):
        raise ParameterError("OUTPUT", "must end in .gguf or .safetensors")
    if os.path.lexists(output):
        raise ParameterError("OUTPUT", "exists already", remedy="Name another file, or remove it")
    source = find_model(options["source"])
    convert = to_gguf if output.suffix == ".gguf" else to_safetensors
    with open_model(source) as model:
        for note in convert(model, output, options["weights"]):
            say(translated(note))
    say(t("{file}: {size:.1f} MB", file=output.name, size=output.stat().st_size / 1e6))
    return 0


def convert_parser() -> Parser:
    """The parser behind `tokenglass convert --help`."""
    parser = Parser("convert", "Write a model as a GGUF file, or its weights as a safetensors file.")
    add = parser.add_argument
    add("source", metavar="SOURCE", help="path of a .gguf file or of a model's folder, or a name")
    add("output", type=Path, metavar="OUTPUT", help="the file to write: .gguf or .safetensors")
    add("--weights", choices=WEIGHT_FORMS, help="write the matrices in this form (default: as they are)")
    return parser


def to_gguf(model: ModelSource, output: Path, weights: str | None) -> list[str]:
    """Everything in one file; what was made of the weights comes back as notes."""
    metadata = {}
    if "tokenizer.ggml.model" not in model.metadata and "token_embd.weight" in model.tensors:
        metadata = gguf_keys(model.path, vocab_size=model.tensors["token_embd.weight"].shape[0])
    view = ModelView(model, weights=form(weights), metadata=metadata)
    write_gguf(output, view, progress=steps(view.data_bytes))
    return view.notes()


def to_safetensors(model: ModelSource, output: Path, weights: str | None) -> list[str]:
    """The weights alone. Blocks have no place there: without --weights they become F32."""
    if weights in ("q8", "q4"):
        raise ParameterError("--weights", "q8 and q4 are blocks, and a safetensors file has none")
    if any(info.type not in FLOATS for info in model.tensors.values()):
        weights = weights or "f32"
    view = ModelView(model, weights=form(weights))
    write_outgoing(output, checkpoint_tensors(view), progress=steps(view.data_bytes))
    return [*view.notes(), t("the weights alone: config.json and the tokenizer's files belong beside them")]


def form(weights: str | None) -> WeightForm | None:
    """The option's text as one of the forms that the parser has let through."""
    return next((known for known in WEIGHT_FORMS if known == weights), None)


def steps(total_bytes: int) -> Callable[[int], None]:
    """A listener for bytes written that says a line at each quarter of a large file."""
    done, said = 0, 0

    def listener(num_bytes: int) -> None:
        nonlocal done, said
        done += num_bytes
        percent = done * 100 // max(1, total_bytes) // STEP * STEP
        if said < percent < 100 and total_bytes >= MIN_BYTES:
            said = percent
            say(t("{percent}% of {total:.0f} MB written", percent=percent, total=total_bytes / 1e6))

    return listener
