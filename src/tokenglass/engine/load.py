"""From a path to a running engine: file, weights, vocabulary, cache pages, threads."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from tokenglass import kernels
from tokenglass.cache import PagePool
from tokenglass.cache.pages import pages_for
from tokenglass.engine.loop import Engine
from tokenglass.engine.scheduler import Scheduler
from tokenglass.errors import ParameterError
from tokenglass.fit import KV_TYPES, cache_layers
from tokenglass.fit.plan import MAX_ROWS as MAX_ROWS
from tokenglass.formats import ModelSource, open_model
from tokenglass.formats.view import WEIGHT_FORMS, ModelView
from tokenglass.formats.view import WeightForm as WeightForm
from tokenglass.models.config import DecoderConfig, read_config
from tokenglass.models.registry import architecture_of
from tokenglass.models.transformers_files import DTYPES as DTYPES
from tokenglass.models.transformers_files import DType as DType
from tokenglass.models.weights import Space, Weights
from tokenglass.processors import memory_bytes, read_processors
from tokenglass.sampling.params import check_integer
from tokenglass.tokens import Tokenizer

EngineName = Literal["tokenglass", "transformers"]
ENGINES: tuple[EngineName, ...] = ("tokenglass", "transformers")
Activations = Literal["int8", "f32"]
KVType = Literal["f16", "f32", "q8"]
MAX_RUNNING = 32  # sequences that run at once


def load(
    path: Path | str,
    *,
    num_threads: int | None = None,
    activations: Activations = "int8",
    kv: KVType = "f16",
    context_length: int | None = None,
    weights: WeightForm | None = None,
    max_rows: int = MAX_ROWS,
    isa: str | None = None,
    engine: EngineName = "tokenglass",
    device: str = "cpu",
    dtype: DType | None = None,
    trust_remote_code: bool = False,
) -> Engine:
    """An engine for the model at `path`: a GGUF file, or a Hugging Face folder.

    activations: `int8` (fast) or `f32` (exact: agrees with a float32 engine on the file's dequantised
    weights); kv: type of the cached keys and values; context_length: positions to keep room for, at most the
    model's own, None: `DecoderConfig.usual_context`; weights: `f32`, `bf16`, `q8` or `q4` makes the matrices
    so when they are loaded, None leaves them as they are. ModelFileError, ParameterError.

    engine `transformers` (extra [transformers]) takes any causal model, on `device`: cpu, cuda, cuda:1, mps;
    dtype: f32, bf16, f16 or None, as the files have them; trust_remote_code: Python files of the model may
    run. activations, kv, weights and max_rows are settings of our own kernels, the others of this engine.
    MissingExtraError, UsageError: the model wants to run code of its own.
    """
    ours = {"activations": activations != "int8", "kv": kv != "f16", "weights": weights is not None}
    theirs = {"device": device != "cpu", "dtype": dtype is not None, "trust_remote_code": trust_remote_code}
    check_engine(engine, {**ours, "max_rows": max_rows != MAX_ROWS}, theirs)
    if activations not in ("int8", "f32"):
        raise ParameterError("activations", f"must be int8 or f32, not {activations!r}")
    if kv not in KV_TYPES:
        raise ParameterError("kv", f"must be f16, f32 or q8, not {kv!r}")
    if weights is not None and weights not in WEIGHT_FORMS:
        raise ParameterError("weights", f"must be one of {', '.join(WEIGHT_FORMS)}, not {weights!r}")
    check_integer("max_rows", max_rows, 1, 1 << 16)
    num_threads = read_processors().num_threads if num_threads is None else num_threads
    check_integer("num_threads", num_threads, 1, 1024)
    cpu = kernels.cpu(num_threads, isa)
    if engine == "transformers":
        from tokenglass.engine.load_transformers import load_transformers

        return load_transformers(
            Path(path),
            cpu=cpu,
            context_length=context_length,
            device=device,
            dtype=dtype,
            trust_remote_code=trust_remote_code,
        )
    with ModelView(open_model(path), weights=weights) as file:
        architecture = architecture_of(file)
        config = read_config(file)
        window = config.usual_context
        if context_length is not None:
            check_integer("context_length", context_length, 2, config.context_length)
            window = context_length
        check_cache_fits(config, window, kv)
        if file.data_bytes < (memory_bytes() or 0) // 2:
            cpu.reserve(file.data_bytes)  # the system clears it while the tokenizer is read
        tokenizer = tokenizer_of(file)
        vocabulary = tokenizer.vocabulary
        model = architecture(
            Weights(file, cpu, exact=activations == "f32"),
            space=Space(window, pages_for(window), kv, max_rows, min(MAX_RUNNING, max_rows)),
            vocab=vocabulary.num_tokens,
        )
        model.notes += [*file.notes(), *vocabulary.notes]
        if window > config.usual_context:
            model.notes.append(
                f"the window of {window} positions is longer than in the training: {config.rope.scaling} "
                f"rotations change for every text, and up to {config.usual_context} they stay as they were"
            )
    scheduler = Scheduler(
        PagePool(model.pages.pages),
        vocabulary,
        context_length=window,
        max_rows=max_rows,
        max_running=MAX_RUNNING,
    )
    return Engine(model, scheduler, tokenizer)


def check_engine(engine: str, ours: dict[str, bool], theirs: dict[str, bool]) -> None:
    """ParameterError: there is no such engine, or a setting is made that belongs to the other one."""
    if engine not in ENGINES:
        raise ParameterError("engine", f"must be tokenglass or transformers, not {engine!r}")
    for name in (name for name, is_set in theirs.items() if is_set and engine == "tokenglass"):
        raise ParameterError(
            name, "is a setting of the engine transformers", remedy="Add --engine transformers"
        )
    for name in (name for name, is_set in ours.items() if is_set and engine == "transformers"):
        raise ParameterError(name, "is a setting of the engine tokenglass", remedy="Leave it out")


def tokenizer_of(model: ModelSource) -> Tokenizer:
    """The tokenizer in a GGUF file, or in the files of a folder. ModelFileError: it is missing or broken."""
    if "tokenizer.ggml.model" in model.metadata:
        return Tokenizer.from_gguf(model)
    embedding = model.tensors.get("token_embd.weight")
    return Tokenizer.from_path(model.path, vocab_size=embedding.shape[0] if embedding else None)


def tokenizer_at(
    path: Path | str, *, engine: EngineName = "tokenglass", trust_remote_code: bool = False
) -> Tokenizer:
    """The tokenizer of the model at `path` without its weights. Errors as for `load`."""
    if engine == "transformers":
        from tokenglass.engine.load_transformers import read_tokenizer

        return read_tokenizer(Path(path), trust_remote_code)[0]
    with open_model(path) as file:
        return tokenizer_of(file)


def check_cache_fits(config: DecoderConfig, context_length: int, kv: str) -> None:
    """ParameterError where keys and values of a full window are larger than this machine's memory."""
    num_bytes = sum(layers.held_bytes(context_length) for layers in cache_layers(config, kv))
    memory = memory_bytes()
    if memory is not None and num_bytes > memory:
        raise ParameterError(
            "context_length",
            f"of {context_length} needs {num_bytes / 1e9:.1f} GB for keys and values: more than there is",
            remedy="Choose a smaller one (--context)",
        )
