"""`tokenglass embed`: texts as vectors, one after another, as JSON lines, OpenAI's JSON, or a numpy file."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tokenglass.cli.errors import translated
from tokenglass.cli.language import t
from tokenglass.cli.model_options import ModelOptions, add_machine, add_model, find_model
from tokenglass.cli.options import utf8
from tokenglass.cli.output import say, write
from tokenglass.cli.parser import Parser
from tokenglass.cli.prompt import read_prompt
from tokenglass.engine import Engine
from tokenglass.engine.embedding import POOLINGS, embed
from tokenglass.errors import ParameterError, TokenglassError

FORMATS = ("jsonl", "json", "npy")


def main(arguments: list[str]) -> int:
    """Writes a vector for each text."""
    values = embed_parser().values(arguments)
    texts, out = values["texts"], values["out"]
    if values["format"] == "npy" and out is None:
        raise ParameterError("--format", "npy needs --out FILE")
    if texts in ([], ["-"]):
        texts = read_prompt("-" if texts else None, "embed").splitlines()
    if not all(texts):
        raise ParameterError("text", "is empty")
    path = find_model(values["model"])
    engine = ModelOptions.of(values).load(path)
    for note in map(translated, engine.model.notes):
        say(note)
    ids = [engine.tokenizer.encode(text) for text in texts]
    vectors = (
        embed(engine, part, pooling=values["pooling"], normalize=not values["no_normalize"]) for part in ids
    )
    if values["format"] == "jsonl" and out is None:
        for line in lines(engine, ids, vectors):
            write(line)
        return 0
    if values["format"] == "npy":
        buffer = io.BytesIO()
        np.save(buffer, np.stack(list(vectors)))
        content = buffer.getvalue()
    elif values["format"] == "jsonl":
        content = "".join(lines(engine, ids, vectors)).encode()
    else:
        content = (json.dumps(openai_record(path.name, ids, vectors)) + "\n").encode()
    if out is None:
        write(content.decode())
    else:
        save(Path(out), content)
    return 0


def embed_parser() -> Parser:
    """The parser behind `tokenglass embed --help`."""
    parser = Parser("embed", t("Texts as vectors: the model's hidden states, pooled."))
    add = parser.add_argument
    add(
        "texts",
        nargs="*",
        type=utf8,
        metavar="TEXT",
        help=t("texts; - or nothing: each line of stdin is one"),
    )
    add_model(parser)
    add("--pooling", choices=POOLINGS, default="mean",
        help=t("mean of all positions (default), the last, or the first"))  # fmt: skip
    add("--no-normalize", action="store_true", help=t("leave the vectors as long as they are"))
    add("--format", choices=FORMATS, default="jsonl",
        help=t("a JSON line for each (default), one JSON object as OpenAI's, or a numpy file"))  # fmt: skip
    add("--out", metavar="FILE", help=t("write to this file"))
    add_machine(parser)
    return parser


def lines(engine: Engine, ids: list[list[int]], vectors: Iterator[NDArray[np.float32]]) -> Iterator[str]:
    """A JSON object for each text."""
    for index, (part, vector) in enumerate(zip(ids, vectors, strict=True)):
        record = {"index": index, "tokens": len(part), "embedding": numbers(vector)}
        yield json.dumps(record) + "\n"


def openai_record(
    model: str, ids: list[list[int]], vectors: Iterator[NDArray[np.float32]]
) -> dict[str, object]:
    """What OpenAI's API answers."""
    data = [
        {"object": "embedding", "index": index, "embedding": numbers(vector)}
        for index, vector in enumerate(vectors)
    ]
    num_tokens = sum(map(len, ids))
    usage = {"prompt_tokens": num_tokens, "total_tokens": num_tokens}
    return {"object": "list", "model": model, "data": data, "usage": usage}


def numbers(vector: NDArray[np.float32]) -> list[float]:
    """The shortest decimals that give the same float32 again."""
    return [float(str(value)) for value in vector]


def save(path: Path, content: bytes) -> None:
    """TokenglassError: it cannot be written."""
    try:
        path.write_bytes(content)
    except OSError as error:
        raise TokenglassError(f"cannot write to {path}: {error.strerror}") from error
