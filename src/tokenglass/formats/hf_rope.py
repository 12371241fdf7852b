"""Rotations as a `config.json` states them, under the keys and tensors of a GGUF file (`models/rope.py`)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenglass.errors import ModelFileError
from tokenglass.formats.cursor import shown
from tokenglass.formats.hf_settings import Settings
from tokenglass.formats.tensor_file import Value

MAX_FACTORS = 4096  # pairs of a head
KNOWN = {
    "rope_type", "type", "rope_theta", "partial_rotary_factor", "factor", "attention_factor", "truncate",
    "original_max_position_embeddings", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "finetuned",
    "low_freq_factor", "high_freq_factor", "short_factor", "long_factor",
}  # fmt: skip


def rope_settings(settings: Settings) -> Settings:
    """The rotation's own settings: `rope_parameters`, or `rope_scaling` and a base beside it as before.

    Gemma 3 has two, for its global and its sliding layers; here are the global ones. ModelFileError: a
    setting in them that we do not know.
    """
    scaling, parameters = settings.inner("rope_scaling"), settings.inner("rope_parameters")
    stated = parameters.config if parameters else {}
    if "full_attention" in stated or "sliding_attention" in stated:
        of_global = Settings(stated, settings.path).inner("full_attention")
        stated = {**(of_global.config if of_global else {}), **(scaling.config if scaling else {})}
    elif scaling and scaling.config:
        stated = scaling.config
    for key, value in stated.items():
        if key not in KNOWN and value is not None:
            raise ModelFileError(settings.path, shown(key[:80]), "is not a known setting of a rotation")
    return Settings({"rope_theta": settings.config.get("rope_theta"), **stated}, settings.path)


def rope_keys(settings: Settings) -> dict[str, Value]:
    """The keys `rope.*`, and `context_length` where the scaling extends it."""
    rope = rope_settings(settings)
    keys: dict[str, Value] = {"rope.freq_base": rope.number("rope_theta", 10000.0)}
    kind, context = _kind(rope), settings.count("max_position_embeddings")
    if settings.config.get("model_type") == "gemma3_text":
        keys["rope.freq_base_swa"] = _base_of_sliding_layers(settings)
        if kind in ("llama3", "longrope"):  # tensors, which would turn the sliding layers too
            raise ModelFileError(rope.path, "rope_type", f"{kind} is not supported yet")
    if kind in ("default", "llama3"):  # llama3 is a tensor: `rope_tensors`
        return keys
    original = context if kind == "dynamic" else _original(settings, rope, context)
    factor = rope.number("factor", max(1.0, context / original))
    if factor <= 0:
        raise ModelFileError(rope.path, "factor", f"is {factor}")
    keys |= {"rope.scaling.type": kind, "rope.scaling.factor": factor}
    if kind == "linear":
        return keys
    keys["rope.scaling.original_context_length"] = original
    if kind in ("dynamic", "yarn"):  # they are written beside the context before them
        keys["context_length"] = max(context, int(original * factor))
    if kind == "yarn":
        keys["rope.scaling.attn_factor"] = _yarn_attention(rope, factor) / _magnitude(factor)
        for theirs, default in (("beta_fast", 32.0), ("beta_slow", 1.0)):
            keys[f"rope.scaling.yarn_{theirs}"] = rope.number(theirs, default)
    if kind == "longrope":
        default = math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 < original else 1.0
        keys["rope.scaling.attn_factor"] = rope.number("attention_factor", default)
    return keys


def rope_tensors(settings: Settings, half: int) -> dict[str, NDArray[np.float32]]:
    """What a GGUF has as tensors: divisors of the `half` frequencies, of Llama 3 and of LongRoPE."""
    rope = rope_settings(settings)
    if not 0 < half <= MAX_FACTORS:
        raise ModelFileError(rope.path, "head_dim", f"is {2 * half}")
    if _kind(rope) == "llama3":
        return {"rope_freqs.weight": _llama3(rope, half)}
    if _kind(rope) == "longrope":
        return {f"rope_factors_{x}.weight": _listed(rope, f"{x}_factor", half) for x in ("short", "long")}
    return {}


def _llama3(rope: Settings, half: int) -> NDArray[np.float32]:
    """Full speed where a turn is short beside the original context, 1 / factor where it is long, and a line
    between them. Source: Transformers (`modeling_rope_utils.py`, Apache-2.0).
    """
    base = rope.number("rope_theta", 10000.0)
    factor, low, high = (rope.number(key) for key in ("factor", "low_freq_factor", "high_freq_factor"))
    original = rope.count("original_max_position_embeddings")
    if factor < 1 or not 0 < low < high or base <= 0:
        raise ModelFileError(rope.path, "rope_scaling", "its factors are out of order")
    turns = original * base ** (-np.arange(half) / half) / (2 * math.pi)  # in the original context
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    divisors: NDArray[np.float32] = (1 / ((1 - smooth) / factor + smooth)).astype(np.float32)
    return divisors


def _listed(rope: Settings, key: str, half: int) -> NDArray[np.float32]:
    values: Any = rope.config.get(key)
    if not isinstance(values, list) or len(values) != half:
        raise ModelFileError(rope.path, key, f"must be a list of {half} numbers")
    if not all(type(value) in (int, float) and 0 < value < 1e30 for value in values):
        raise ModelFileError(rope.path, key, "must hold positive numbers")
    return np.array(values, np.float32)


def _base_of_sliding_layers(settings: Settings) -> float:
    """Theirs is never scaled."""
    base = settings.number("rope_local_base_freq", 10000.0)
    parameters = settings.inner("rope_parameters")
    local = parameters.inner("sliding_attention") if parameters else None
    if local is None:
        return base
    if _kind(local) != "default":
        raise ModelFileError(settings.path, "rope_type", f"{shown(_kind(local)[:80])} is not supported yet")
    return local.number("rope_theta", base)


def _kind(rope: Settings) -> str:
    """`default`, `linear`, `llama3` …; the key was called `type` before, and LongRoPE `su`."""
    kind = rope.text("rope_type", rope.text("type", "default"))
    return {"su": "longrope"}.get(kind, kind)


def _original(settings: Settings, rope: Settings, context: int) -> int:
    """The context before the scaling; where none is stated, the one that is."""
    key = "original_max_position_embeddings"
    return settings.count(key, rope.count(key, context))


def _yarn_attention(rope: Settings, factor: float) -> float:
    """By what YaRN multiplies cosines and sines."""
    if rope.config.get("truncate") is False:
        raise ModelFileError(rope.path, "truncate", f"{False} is not supported yet")
    scales = [rope.number(key, 0.0) for key in ("mscale", "mscale_all_dim")]
    default = _magnitude(factor)
    if all(scale > 0 for scale in scales):
        default = _magnitude(factor, scales[0]) / _magnitude(factor, scales[1])
    return rope.number("attention_factor", default)


def _magnitude(factor: float, scale: float = 1.0) -> float:
    return 1.0 if factor <= 1 else 0.1 * scale * math.log(factor) + 1
