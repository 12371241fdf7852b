"""`tokenglass convert`: a model out of one kind of file into another, its weights as they are or made anew.

A GGUF holds everything, and so does a folder as Hugging Face has them, for programs that read those. A
safetensors file holds the weights alone.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
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
from tokenglass.formats.hf_folder import CONFIG, FLOATS
from tokenglass.formats.json_file import read_json
from tokenglass.formats.view import WEIGHT_FORMS, ModelView, WeightForm
from tokenglass.formats.whole_file import whole_folder
from tokenglass.formats.write_gguf import write_gguf
from tokenglass.formats.write_safetensors import write_outgoing
from tokenglass.models.export import config_json, same_model
from tokenglass.tokens.export import tokenizer_files
from tokenglass.tokens.gguf_keys import gguf_keys

STEP = 25  # percent between two lines
NOT_WRITTEN = (".bin", ".pt", ".pth", ".ggml", ".json", ".zip", ".onnx")
COPIED = (
    ".json",
    ".txt",
    ".jinja",
    ".model",
    ".md",
    ".tiktoken",
)  # what belongs to weights
TORCH_NAMES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
MIN_BYTES = 100_000_000  # a smaller file is written before a line is read


def main(arguments: list[str]) -> int:
    """Writes the file or folder, whole or not at all; what was done goes to stderr."""
    options = convert_parser().values(arguments)
    output: Path = options["output"]
    if output.suffix in NOT_WRITTEN:
        problem = "must end in .gguf or .safetensors, or be the name of a folder"
        raise ParameterError("OUTPUT", problem)
    if os.path.lexists(output):
        raise ParameterError("OUTPUT", f"{output} exists already", remedy="Name another, or remove it")
    source = find_model(options["source"])
    convert = {".gguf": to_gguf, ".safetensors": to_safetensors}.get(output.suffix, to_folder)
    with open_model(source) as model:
        for note in convert(model, output, options["weights"]):
            say(translated(note))
    files = [output] if output.is_file() else [*output.iterdir()]
    num_bytes = sum(file.stat().st_size for file in files)
    say(t("{file}: {size:.1f} MB", file=output.name, size=num_bytes / 1e6))
    return 0


def convert_parser() -> Parser:
    """The parser behind `tokenglass convert --help`."""
    parser = Parser(
        "convert", "Write a model as a GGUF file or a folder, or its weights as a safetensors file."
    )
    add = parser.add_argument
    add("source", metavar="SOURCE", help="path of a .gguf file or of a model's folder, or a name")
    add("output", type=Path, metavar="OUTPUT", help="what to write: .gguf, .safetensors, or a folder")
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
    view = _as_floats(model, weights)
    write_outgoing(output, checkpoint_tensors(view), progress=steps(view.data_bytes))
    return [*view.notes(), t("the weights alone: an OUTPUT without .safetensors becomes a whole folder")]


def to_folder(model: ModelSource, output: Path, weights: str | None) -> list[str]:
    """A Hugging Face folder: weights, config.json, the tokenizer's files. Of a folder they are copied.

    ModelFileError: something in the model has no words there; nothing is written then.
    """
    view = _as_floats(model, weights)
    texts = {} if model.path.is_dir() else tokenizer_files(model)
    config = read_json(model.path / CONFIG) if model.path.is_dir() else config_json(model)
    sizes: Counter[str] = Counter()
    for info in view.tensors.values():
        sizes[info.type.name] += info.num_bytes
    config["torch_dtype"] = TORCH_NAMES[max(sizes, key=lambda name: sizes[name])]
    config.pop("dtype", None)
    with whole_folder(output) as folder:
        for name, text in (texts | {CONFIG: json.dumps(config, indent=1, ensure_ascii=False)}).items():
            (folder / name).write_text(text, encoding="utf-8")
        if model.path.is_dir():
            for path in model.path.iterdir():
                if path.suffix in COPIED and path.name != CONFIG and not path.name.endswith(".index.json"):
                    shutil.copyfile(path, folder / path.name)
        write_outgoing(
            folder / "model.safetensors", checkpoint_tensors(view), progress=steps(view.data_bytes)
        )
        with open_model(folder) as written:
            same_model(model, written)
    return view.notes()


def _as_floats(model: ModelSource, weights: str | None) -> ModelView:
    if weights in ("q8", "q4"):
        raise ParameterError("--weights", "q8 and q4 are blocks, and a safetensors file has none")
    if any(info.type not in FLOATS for info in model.tensors.values()):
        weights = weights or "f32"
    return ModelView(model, weights=form(weights))


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
