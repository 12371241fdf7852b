"""The numbers that give a decoder its shape, read from a GGUF and checked before anything is sized by them.

Soft caps and mixtures of experts are refused by name until a model here computes them. Positions: `rope.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tokenglass.errors import ModelFileError
from tokenglass.formats import ModelSource
from tokenglass.models.rope import Rope, read_rope

MAX_LAYERS, MAX_HIDDEN, MAX_CONTEXT = (
    1024,
    1 << 17,
    1 << 22,
)  # far above any model; they bound what a hostile file can ask for


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
    sliding_window: int  # positions that a row sees, itself included; 0: all

    @property
    def kv_values_per_token(self) -> int:
        """2 (K and V) x layers x KV heads x head size."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim


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
    context_length = count("context_length", MAX_CONTEXT)
    config = DecoderConfig(
        architecture=arch,
        num_layers=count("block_count", MAX_LAYERS),
        hidden=hidden,
        ffn=count("feed_forward_length", 1 << 20),
        num_heads=num_heads,
        num_kv_heads=count("attention.head_count_kv", num_heads, default=num_heads),
        head_dim=head_dim,
        context_length=context_length,
        norm_eps=file.get(f"{arch}.{_eps_key(arch)}", float),
        rope=read_rope(file, head_dim, context_length),
        sliding_window=file.get(f"{arch}.attention.sliding_window", int, default=0),
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
    if not 0 <= config.sliding_window < 1 << 24:
        refuse("attention.sliding_window", f"is {config.sliding_window}")
    value_dim = file.get(f"{arch}.attention.value_length", int, default=config.head_dim)
    if value_dim != config.head_dim:
        refuse("attention.value_length", f"{value_dim} differs from the key length {config.head_dim}")
    for key in ("attn_logit_softcapping", "final_logit_softcapping"):
        if file.get(f"{arch}.{key}", float, default=0.0):
            refuse(key, "soft caps are not supported yet")
    if file.get(f"{arch}.expert_count", int, default=0):
        refuse("expert_count", "mixtures of experts are not supported yet")
