"""From a path to an engine whose scores come from Transformers; all around the model is as ever.

A GGUF file, a `tokenizer.json` and tiktoken's ranks say everything about a tokenizer: those we read
ourselves. For other files Transformers makes the tokenizer that the folder names, and a note says so.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tokenglass import kernels
from tokenglass.cache import PagePool
from tokenglass.cache.pages import pages_for
from tokenglass.engine.loop import Engine
from tokenglass.engine.scheduler import Scheduler
from tokenglass.models.transformers import TransformersModel
from tokenglass.models.transformers_files import DType, open_transformers, quiet
from tokenglass.sampling.params import check_integer
from tokenglass.tokens import Tokenizer
from tokenglass.tokens.ends import ends_of
from tokenglass.tokens.transformers_tokenizer import read_with_transformers

NO_WINDOW = 1 << 20  # positions, where a model names no end (Mamba, ALiBi)
MAX_RUNNING = 32  # sequences that run at once


def load_transformers(
    path: Path,
    *,
    cpu: kernels.Cpu,
    context_length: int | None = None,
    device: str = "cpu",
    dtype: DType | None = None,
    trust_remote_code: bool = False,
) -> Engine:
    """An engine for any causal model. Errors as for `open_transformers`; ModelFileError: no tokenizer.

    A prompt runs in one pass, as in `model.generate`: a recurrent state cannot take it in pieces.
    """
    model = open_transformers(path, cpu=cpu, device=device, dtype=dtype, trust_remote_code=trust_remote_code)
    window = model.context_length or NO_WINDOW
    if context_length is not None:
        check_integer("context_length", context_length, 2, window)
        window = context_length
    tokenizer = tokenizer_for(model, path, trust_remote_code)
    scheduler = Scheduler(
        PagePool(pages_for(window), model.drop),
        tokenizer.vocabulary,
        context_length=window,
        max_rows=window,
        max_running=MAX_RUNNING,
    )
    return Engine(model, scheduler, tokenizer)


def tokenizer_for(model: TransformersModel, path: Path, trust_remote_code: bool) -> Tokenizer:
    """The tokenizer of `path`, with the model's own ends and as many tokens as it has scores."""
    tokenizer, maker = read_tokenizer(path, trust_remote_code)
    vocabulary = tokenizer.vocabulary.padded(model.vocab)
    ends, notes = ends_of(model.end_ids, {}, model.vocab)
    tokenizer.vocabulary = replace(vocabulary, end_ids=vocabulary.end_ids | ends)
    if maker:
        model.notes.append(f"the tokenizer is made by Transformers ({maker})")
    model.notes += dict.fromkeys((*vocabulary.notes, *notes))
    return tokenizer


def read_tokenizer(path: Path, trust_remote_code: bool) -> tuple[Tokenizer, str | None]:
    """The tokenizer as the files have it, and the class of Transformers that made it, if one did."""
    if path.is_file() or (path / "tokenizer.json").is_file() or any(path.glob("*.tiktoken")):
        return Tokenizer.from_path(path), None
    with quiet():
        return read_with_transformers(path, trust_remote_code=trust_remote_code)
