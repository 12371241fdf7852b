"""The numbers that give a decoder its shape, read from a GGUF and checked before anything is sized by them.

A key that changes what is computed is read, or refused by name unless it has the value that changes nothing;
`tests/models/test_keys.py` goes over all keys that the format knows. Positions: `rope.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tokenglass.errors import ModelFileError
from tokenglass.formats import ModelSource
from tokenglass.formats.cursor import shown
from tokenglass.models.rope import Rope, read_rope

MAX_LAYERS, MAX_HIDDEN, MAX_CONTEXT = (
    1024,
    1 << 17,
    1 << 22,
)  # far above any model; they bound what a hostile file can ask for
# `attention.sliding_window_pattern` of a file without one. n: every n-th layer sees all positions, the others
# a window; 0: all see a window, 1: none does
WINDOW_PATTERNS = {"llama": 0, "phi3": 0, "gemma3": 6}
TURN_PATTERNS = {"smollm3": 4}  # `rope.pattern` likewise: every fourth layer does not turn q and k

# what no model here computes, behind the values that change nothing
_NOT_SUPPORTED: tuple[tuple[tuple[object, ...], str], ...] = (
    ((0,), "attn_logit_softcapping final_logit_softcapping router_logit_softcapping"),
    ((0,), "expert_count expert_shared_count nextn_predict_layers use_parallel_residual swin_norm"),
    ((0,), "rescale_every_n_layers activation_sparsity_scale swiglu_clamp_exp swiglu_clamp_shexp"),
    ((0,), "attention.max_alibi_bias attention.clamp_kqv attention.temperature_scale"),
    ((0,), "attention.shared_kv_layers attention.q_lora_rank attention.kv_lora_rank"),
    ((0,), "rope.scaling.yarn_log_multiplier rope.scaling.alpha"),
    ((0, 1), "rope.scale_linear logit_scale residual_scale embedding_scale attention.output_scale"),
    ((1,), "rope.scaling.yarn_ext_factor rope.scaling.yarn_attn_factor attention.causal"),
    (("reference", "Meta AI original pth"), "tensor_data_layout"),
    ((), "rope.dimension_sections rope.dimension_count_swa"),
    ((), "attention.key_length_swa attention.value_length_swa"),
)


@dataclass(frozen=True, kw_only=True)
class DecoderConfig:
    """Invariant: every count is positive, heads are a multiple of KV heads, head_dim a multiple of 16 up to
    256.
    """

    architecture: str
    num_layers: int
    hidden: int
    ffn: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    context_length: int
    norm_eps: float
    rope: Rope
    windows: tuple[int, ...]  # of each layer: the positions that a row sees, itself included; 0: all
    turned: tuple[bool, ...]  # of each layer: whether its q and k turn with the position

    @property
    def kv_values_per_token(self) -> int:
        """2 (K and V) x layers x KV heads x head size."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim

    @property
    def usual_context(self) -> int:
        """The window where none is asked for. Where q and k turn by the length of the window, it is as long
        as in the training: every text that fits into it runs as it was trained.
        """
        if self.rope.scaling in ("dynamic", "longrope"):
            return min(self.rope.original_context, self.context_length)
        return self.context_length


def read_config(file: ModelSource) -> DecoderConfig:
    """The shape of a decoder. ModelFileError names the key that is missing, out of range or
    inconsistent.
    """
    arch = file.get("general.architecture", str)

    def count(key: str, most: int, default: int | None = None) -> int:
        name = f"{arch}.{key}"
        value = file.get(name, int) if default is None else file.get(name, int, default=default)
        if not 1 <= value <= most:
            raise ModelFileError(file.path, name, f"is {value}, expected 1 to {most}")
        return value

    num_heads = count("attention.head_count", 4095)
    hidden = count("embedding_length", MAX_HIDDEN)
    head_dim = count("attention.key_length", 256, default=max(1, hidden // num_heads))
    context_length, num_layers = count("context_length", MAX_CONTEXT), count("block_count", MAX_LAYERS)
    config = DecoderConfig(
        architecture=arch,
        num_layers=num_layers,
        hidden=hidden,
        ffn=count("feed_forward_length", 1 << 20),
        num_heads=num_heads,
        num_kv_heads=count("attention.head_count_kv", num_heads, default=num_heads),
        head_dim=head_dim,
        context_length=context_length,
        norm_eps=file.get(f"{arch}.{_eps_key(arch)}", float),
        rope=read_rope(file, head_dim, context_length),
        windows=_windows(file, arch, num_layers),
        turned=_flags(file, f"{arch}.rope.pattern", num_layers, TURN_PATTERNS.get(arch, 0)),
    )
    _check(config, file)
    return config


def _eps_key(arch: str) -> str:
    return "attention.layer_norm_epsilon" if arch == "gpt2" else "attention.layer_norm_rms_epsilon"


def _check(config: DecoderConfig, file: ModelSource) -> None:
    arch = config.architecture

    def refuse(key: str, problem: str) -> None:
        raise ModelFileError(file.path, f"{arch}.{key}", problem)

    if config.num_heads % config.num_kv_heads:
        refuse("attention.head_count_kv", f"{config.num_kv_heads} does not divide {config.num_heads} heads")
    if config.head_dim % 16 or config.head_dim > 256:
        refuse("attention.key_length", f"head size {config.head_dim} is not a multiple of 16 up to 256")
    if config.hidden % 32 or config.ffn % 32 or config.num_heads * config.head_dim % 32:
        refuse("embedding_length", "hidden, feed-forward and attention lengths must be multiples of 32")
    if not 0.0 <= config.norm_eps < 1.0:
        refuse(_eps_key(arch), f"is {config.norm_eps}")
    value_dim = file.get(f"{arch}.attention.value_length", int, default=config.head_dim)
    if value_dim != config.head_dim:
        refuse("attention.value_length", f"{value_dim} differs from the key length {config.head_dim}")
    of_gemma3 = ((), "attention.scale rope.freq_base_swa") if arch != "gemma3" else ((), "")
    for harmless, keys in (*_NOT_SUPPORTED, of_gemma3):
        for key in keys.split():
            value = file.metadata.get(f"{arch}.{key}")
            if value is not None and not (np.isscalar(value) and value in harmless):
                refuse(key, f"{shown(str(value)[:80])} is not supported yet")


def _windows(file: ModelSource, arch: str, num_layers: int) -> tuple[int, ...]:
    key = f"{arch}.attention.sliding_window"
    window = file.get(key, int, default=0)
    if not 0 <= window < 1 << 24:
        raise ModelFileError(file.path, key, f"is {window}")
    slides = _flags(file, f"{key}_pattern", num_layers, WINDOW_PATTERNS.get(arch, 1))
    return tuple(window if has_window else 0 for has_window in slides)


def _flags(file: ModelSource, key: str, num_layers: int, default: int) -> tuple[bool, ...]:
    """A flag for each layer: an array of bools, or a number n: all but every n-th, 0: all of them."""
    if isinstance(file.metadata.get(key), np.ndarray):
        flags = file.get(key, np.bool_)
        if flags.size != num_layers:
            raise ModelFileError(file.path, key, f"has {flags.size} values for {num_layers} layers")
        return tuple(flags.tolist())
    every = file.get(key, int, default=default)
    if not 0 <= every <= MAX_LAYERS:
        raise ModelFileError(file.path, key, f"is {every}")
    return tuple(every == 0 or (i + 1) % every != 0 for i in range(num_layers))
