"""What a Hugging Face `config.json` says, under the keys of a GGUF file: read by `models/config.py` as ever.

A setting that changes what a model computes is either translated or refused by name; none is passed over.
Keys: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, and llama.cpp's converter (MIT).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenglass.errors import ModelFileError
from tokenglass.formats.cursor import shown
from tokenglass.formats.hf_names import ARCHITECTURES, Architecture
from tokenglass.formats.hf_rope import rope_keys, rope_settings
from tokenglass.formats.hf_settings import Settings
from tokenglass.formats.tensor_file import Value

# architecture -> settings that must have this value (or be absent), for no model here computes otherwise
_EXPECTED: dict[str, dict[str, Any]] = {
    "llama": {"hidden_act": "silu"},
    "qwen2": {"hidden_act": "silu", "use_sliding_window": False},
    "qwen3": {"hidden_act": "silu", "use_sliding_window": False},
    "gemma3": {
        "hidden_activation": "gelu_pytorch_tanh", "use_bidirectional_attention": False,
    },
    "phi3": {"hidden_act": "silu"},
    "gpt2": {
        "activation_function": "gelu_new", "add_cross_attention": False, "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
    },
}  # fmt: skip


def architecture_of(config: Mapping[str, Any], path: Path) -> Architecture:
    """What `model_type` names. ModelFileError: it is not known, or its weights are quantised elsewhere."""
    name = config.get("model_type")
    if not isinstance(name, str) or name not in ARCHITECTURES:
        remedy = f"Supported: {', '.join(ARCHITECTURES)}"
        raise ModelFileError(
            path, "model_type", f"{shown(str(name)[:80])} is not supported yet", remedy=remedy
        )
    if config.get("quantization_config") is not None:
        raise ModelFileError(
            path,
            "quantization_config",
            "the weights are quantised in a way that is not supported yet",
            remedy="Take the model's original weights, or a GGUF file of it",
        )
    for key, value in _EXPECTED[ARCHITECTURES[name].name].items():
        if (actual := config.get(key, value)) != value:
            raise ModelFileError(path, key, f"{shown(str(actual)[:80])} is not supported yet")
    return ARCHITECTURES[name]


def metadata_of(config: Mapping[str, Any], path: Path, model_name: str) -> dict[str, Value]:
    """The keys of a GGUF file for this model. ModelFileError names the setting that is missing or odd."""
    architecture = architecture_of(config, path).name
    settings = Settings(config, path)
    keys = _gpt2(settings) if architecture == "gpt2" else _decoder(settings, architecture)
    general: dict[str, Value] = {
        "general.architecture": architecture,
        "general.type": "model",
        "general.name": model_name,
    }
    return {**general, **{f"{architecture}.{key}": value for key, value in keys.items()}}


def _gpt2(settings: Settings) -> dict[str, Value]:
    hidden = settings.count("n_embd")
    return {
        "context_length": settings.count("n_positions", settings.config.get("n_ctx")),
        "embedding_length": hidden,
        "feed_forward_length": settings.count("n_inner", 4 * hidden),
        "block_count": settings.count("n_layer"),
        "attention.head_count": settings.count("n_head"),
        "attention.layer_norm_epsilon": settings.number("layer_norm_epsilon", 1e-5),
        "vocab_size": settings.count("vocab_size"),
    }


def _decoder(settings: Settings, architecture: str) -> dict[str, Value]:
    heads, hidden = settings.count("num_attention_heads"), settings.count("hidden_size")
    head_dim = settings.count("head_dim", max(1, hidden // heads))
    rotated = rope_settings(settings).number(
        "partial_rotary_factor", settings.number("partial_rotary_factor", 1.0)
    )
    keys: dict[str, Value] = {
        "block_count": settings.count("num_hidden_layers"),
        "context_length": settings.count("max_position_embeddings"),
        "embedding_length": hidden,
        "feed_forward_length": settings.count("intermediate_size"),
        "attention.head_count": heads,
        "attention.head_count_kv": settings.count("num_key_value_heads", heads),
        "attention.key_length": head_dim,
        "attention.value_length": head_dim,
        "attention.layer_norm_rms_epsilon": settings.number("rms_norm_eps"),
        "vocab_size": settings.count("vocab_size"),
        "rope.dimension_count": max(1, int(head_dim * rotated)),
    }
    if not architecture.startswith("qwen") and settings.config.get("sliding_window") is not None:
        keys["attention.sliding_window"] = settings.count("sliding_window")
    if architecture == "gemma3":
        keys |= _gemma3(settings, head_dim)
    return keys | rope_keys(settings)


def _gemma3(settings: Settings, head_dim: int) -> dict[str, Value]:
    pattern = settings.count("sliding_window_pattern", settings.config.get("_sliding_window_pattern", 6))
    layers = settings.config.get("layer_types")
    kinds = ("full_attention", "sliding_attention")
    if pattern != 6 or not (
        layers is None
        or (
            isinstance(layers, list) and all(kind == kinds[(i + 1) % 6 != 0] for i, kind in enumerate(layers))
        )
    ):
        raise ModelFileError(settings.path, "layer_types", "only every sixth layer may be global")
    scale = settings.number("query_pre_attn_scalar", head_dim)
    keys: dict[str, Value] = {} if scale == head_dim else {"attention.scale": abs(scale) ** -0.5}
    for key in ("attn_logit_softcapping", "final_logit_softcapping"):
        if settings.config.get(key) is not None:
            keys[key] = settings.number(key)
    return keys
