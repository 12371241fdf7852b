"""What a run was asked, as JSON: for `--json`, for the header of a trace, and back again for `replay`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenglass import __version__
from tokenglass.cli.options import RunOptions
from tokenglass.cli.prompt import TEMPLATE_OPTIONS, is_chat
from tokenglass.cli.sampling_options import NAMES as SAMPLING
from tokenglass.engine import Engine, Request
from tokenglass.errors import UsageError
from tokenglass.sampling import Sampling

MAX_HASHED_BYTES = 1 << 30  # reading more takes longer than an answer is worth waiting for


def settings(engine: Engine, options: RunOptions, request: Request) -> dict[str, Any]:
    """Every setting as it was really used, defaults and drawn seed included."""
    return {
        "chat": is_chat(engine.tokenizer, vars(options)),
        "system": options.system,
        **{name: getattr(options, name) for name in TEMPLATE_OPTIONS},
        "preset": options.preset,
        **{name: getattr(request.sampling, name) for name in SAMPLING},
        "logit_bias": {str(token_id): value for token_id, value in request.sampling.logit_bias.items()},
        "max_tokens": request.max_tokens,
        "min_tokens": request.min_tokens,
        "stop": list(request.stop),
        "ignore_eos": request.ignore_eos,
        "use_cache": request.use_cache,
        "context_length": engine.context_length,
        "num_threads": engine.model.cpu.num_threads,
        "isa": engine.model.cpu.isa,
        "activations": options.activations,
        "kv": options.kv,
        "weights": options.weights,
        "engine": options.engine,
        "device": options.device,
        "dtype": options.dtype,
    }


def header(engine: Engine, options: RunOptions, request: Request, path: Path) -> dict[str, Any]:
    """The first line of a trace: which model file, which prompt, every setting."""
    is_name = not any(
        mark in options.model for mark in "/\\"
    )  # a folder of this machine is nobody's business
    return {
        "version": __version__,
        "model": {"name": options.model if is_name else path.name, **identity(path)},
        "prompt_ids": list(request.prompt_ids),
        "settings": settings(engine, options, request),
    }


def identity(path: Path) -> dict[str, Any]:
    """What tells a model from another one: length and sha256 of its file, or of a folder's files in a row.

    sha256 is None for more than 1 GiB.
    """
    files = sorted(file for file in path.iterdir() if file.is_file()) if path.is_dir() else [path]
    num_bytes = sum(file.stat().st_size for file in files)
    if num_bytes > MAX_HASHED_BYTES:
        return {"file": path.name, "num_bytes": num_bytes, "sha256": None}
    digest = hashlib.sha256()
    for name in files:
        with name.open("rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return {"file": path.name, "num_bytes": num_bytes, "sha256": digest.hexdigest()}


def request_of(header: Mapping[str, Any]) -> Request:
    """The request that a trace's header describes. UsageError: it does not describe one."""
    values = field(header, "settings", dict)
    prompt_ids = field(header, "prompt_ids", list)
    stop = field(values, "stop", list)
    if not all(type(token_id) is int for token_id in prompt_ids) or not all(type(s) is str for s in stop):
        raise UsageError("the trace's header has no usable prompt_ids or stop")
    try:
        logit_bias = {int(key): value for key, value in field(values, "logit_bias", dict).items()}
    except ValueError:
        raise UsageError("the trace's header has a logit_bias that names no tokens") from None
    return Request(
        prompt_ids=prompt_ids,
        sampling=Sampling(**{name: field(values, name) for name in SAMPLING}, logit_bias=logit_bias),
        max_tokens=field(values, "max_tokens"),
        min_tokens=values.get("min_tokens", 0),  # traces of before these two say nothing
        stop=tuple(stop),
        ignore_eos=values.get("ignore_eos") is True,
        continues_text=not field(values, "chat", bool),
        use_cache=field(values, "use_cache", bool),
    )


def field(values: Mapping[str, Any], name: str, kind: type | None = None) -> Any:
    """One value of a header. UsageError: it is missing or of another kind."""
    if name not in values or (kind is not None and not isinstance(values[name], kind)):
        raise UsageError(f"the trace's header has no usable {name}")
    return values[name]
