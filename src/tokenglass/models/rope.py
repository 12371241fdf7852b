"""How far q and k turn with the position, and how a longer context slows that down.

Pair i of a head's first `dims` dimensions turns by position * base^(-2i / dims). To reach beyond the context
of its training a model divides that speed, by one number or by one for each pair:

    linear    factor, all pairs                            https://arxiv.org/abs/2306.15595
    dynamic   the base grows with the window that is loaded (NTK)
    yarn      fast pairs stay, slow pairs are divided, a line between    https://arxiv.org/abs/2309.00071
    longrope  a tensor of divisors, one for short windows and one for long    https://arxiv.org/abs/2402.13753
    llama3    a tensor of divisors (`rope_freqs`), whatever the window

A table is made for one window, when the model is loaded; nothing changes while a text grows. So `dynamic`
and `longrope` go by the window, where Transformers goes by the text so far, and its cached keys do not turn
again. In a window as long as the training's both are the same, and where none is asked for it is that long
(`DecoderConfig.usual_context`). Formulas: Transformers (modeling_rope_utils.py, Apache-2.0).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokenglass import kernels
from tokenglass.errors import ModelFileError
from tokenglass.formats import ModelSource
from tokenglass.models.weights import Weights

SCALINGS = ("none", "linear", "dynamic", "yarn", "longrope")
LEAST = 0.01  # of every factor and divisor: far below any model, and no pair turns too fast for a table
F32 = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Rope:
    """Invariant: `dims` is even and at most a head; the numbers are finite, the scaling's at least LEAST."""

    dims: int
    base: float
    scaling: str = "none"
    factor: float = 1.0
    original_context: int = 1  # positions of the training before the scaling
    attention_factor: float = 1.0  # cosines and sines are multiplied by it
    beta_fast: float = 32.0  # yarn: pairs with more turns than this in the original context stay
    beta_slow: float = 1.0  # yarn: pairs with fewer are divided by the whole factor


def read_rope(file: ModelSource, head_dim: int, context_length: int) -> Rope:
    """What the keys `rope.*` of a file say. ModelFileError names the one that is out of range."""
    arch = file.get("general.architecture", str)

    def number(key: str, default: float) -> float:
        value = file.get(f"{arch}.rope.{key}", float, default=default)
        if not LEAST <= value < 1e12:
            raise ModelFileError(file.path, f"{arch}.rope.{key}", f"is {value}")
        return value

    def count(key: str, most: int, default: int) -> int:
        value = file.get(f"{arch}.rope.{key}", int, default=default)
        if not 1 <= value <= most:
            raise ModelFileError(file.path, f"{arch}.rope.{key}", f"is {value}, expected 1 to {most}")
        return value

    dims = count("dimension_count", head_dim, head_dim)
    if dims % 2:
        raise ModelFileError(file.path, f"{arch}.rope.dimension_count", f"is {dims}")
    base = number("freq_base", 10000.0)
    if base <= 1.0:
        raise ModelFileError(file.path, f"{arch}.rope.freq_base", f"is {base}")
    factor = number("scaling.factor", 1.0)
    scaling = file.get(f"{arch}.rope.scaling.type", str, default="linear" if factor != 1.0 else "none")
    if "rope_factors_long.weight" in file.tensors:
        scaling = "longrope"  # converters of Phi 3 write the tensors and no name
    if scaling not in SCALINGS:
        raise ModelFileError(file.path, f"{arch}.rope.scaling.type", f"{scaling!r} is not supported yet")
    original = count("scaling.original_context_length", 1 << 24, context_length)
    default = 1.0
    if scaling == "yarn" and factor > 1:
        default = 0.1 * math.log(factor) + 1
    if scaling == "longrope" and context_length > original > 1:
        default = math.sqrt(1 + math.log(context_length / original) / math.log(original))
    attention = number("scaling.attn_factor", 1.0 if scaling == "yarn" else default)
    return Rope(
        dims=dims,
        base=base,
        scaling=scaling,
        factor=factor,
        original_context=original,
        attention_factor=attention * default
        if scaling == "yarn"
        else attention,  # as llama.cpp reads the key
        beta_fast=number("scaling.yarn_beta_fast", 32.0),
        beta_slow=number("scaling.yarn_beta_slow", 1.0),
    )


def rotations(rope: Rope, weights: Weights, context: int) -> kernels.RopeTable:
    """Cosines and sines of each position of the window."""
    speeds = frequencies(rope, weights, context)
    table: kernels.RopeTable = weights.ops.RopeTable(speeds, context, rope.attention_factor)
    return table


def frequencies(rope: Rope, weights: Weights, context: int) -> F32:
    """The angle of one position for each pair, float32 [dims / 2]."""
    half, base = rope.dims // 2, rope.base
    if rope.scaling == "dynamic" and context > rope.original_context and rope.dims > 2:
        longer = rope.factor * context / rope.original_context - (rope.factor - 1)
        base *= longer ** (rope.dims / (rope.dims - 2))
    speeds = np.array([base ** (-i / half) for i in range(half)], np.float32)
    if weights.has("rope_freqs.weight"):
        speeds /= divisors(weights, "rope_freqs.weight", half)
    if rope.scaling == "linear":
        speeds /= np.float32(rope.factor)
    if rope.scaling == "yarn":
        slow = slow_share(rope)
        speeds = speeds * (1 - slow) + speeds / np.float32(rope.factor) * slow
    if rope.scaling == "longrope":
        short, long = (divisors(weights, f"rope_factors_{x}.weight", half) for x in ("short", "long"))
        speeds /= long if context > rope.original_context else short
    return speeds


def slow_share(rope: Rope) -> F32:
    """YaRN's ramp: 0 where a pair keeps its speed, 1 where the factor divides it, float32 [dims / 2]."""

    def pair(turns: float) -> float:
        """The pair that makes so many turns in the original context."""
        return rope.dims * math.log(rope.original_context / (turns * 2 * math.pi)) / (2 * math.log(rope.base))

    low, high = max(math.floor(pair(rope.beta_fast)), 0), min(math.ceil(pair(rope.beta_slow)), rope.dims - 1)
    ramp = (np.arange(rope.dims // 2) - low) / max(high - low, 0.001)
    return np.clip(ramp, 0, 1).astype(np.float32)


def divisors(weights: Weights, name: str, half: int) -> F32:
    """A tensor of numbers from LEAST on, float32 [half]. ModelFileError: it is missing, or holds others."""
    values = weights.vector(name, half)
    if not (np.isfinite(values) & (values >= np.float32(LEAST))).all():
        raise ModelFileError(weights.file.path, f"tensor {name}", f"must hold numbers from {LEAST} on")
    return values
