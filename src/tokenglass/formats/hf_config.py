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
from tokenglass.formats.hf_layers import layer_keys
from tokenglass.formats.hf_names import ARCHITECTURES, Architecture
from tokenglass.formats.hf_rope import rope_keys, rope_settings
from tokenglass.formats.hf_settings import Settings
from tokenglass.formats.tensor_file import Value

# model_type -> what Transformers takes for a setting that is left out, where that is not what others take
_DEFAULTS: dict[str, dict[str, Any]] = {
    "mistral": {"num_key_value_heads": 8, "sliding_window": 4096},
    "smollm3": {"num_key_value_heads": 4, "rope_theta": 2e6},
    "qwen2": {"num_key_value_heads": 32, "sliding_window": 4096},
    "qwen3": {"num_key_value_heads": 32, "sliding_window": 4096, "head_dim": 128},
    "gemma3_text": {
        "num_key_value_heads": 4, "head_dim": 256, "query_pre_attn_scalar": 256, "sliding_window": 4096,
        "rope_theta": 1e6,
    },
    "phi3": {"original_max_position_embeddings": 4096},
}  # fmt: skip
_TANH_GELU = ("gelu_new", "gelu_pytorch_tanh", "gelu_fast")  # one function
# architecture -> its activation: the setting and the values we compute; others have hidden_act and SwiGLU
_ACTIVATIONS = {
    "gemma3": ("hidden_activation", _TANH_GELU),
    "gpt2": ("activation_function", _TANH_GELU),
}
# Settings that change what a model computes, and the values that do not (absent and null do not either); also
# those that Transformers knows in other architectures only: who writes them means something by it.
_NOT_SUPPORTED: tuple[tuple[tuple[Any, ...], str], ...] = (
    ((), "attn_logit_softcapping final_logit_softcapping clip_qkv attention_multiplier llama_4_scaling"),
    ((0,), "num_experts num_local_experts n_routed_experts kv_lora_rank q_lora_rank num_kv_shared_layers"),
    ((1,), "embedding_multiplier residual_multiplier logits_scaling logit_scale mup_width_multiplier"),
    ((False,), "use_qk_norm qk_layernorm alibi parallel_attn use_parallel_residual use_mrope"),
    ((False,), "is_encoder_decoder use_bidirectional_attention add_cross_attention"),
    ((False,), "scale_attn_by_inverse_layer_idx"),
    ((True,), "scale_attn_weights"),
)


def architecture_of(config: Mapping[str, Any], path: Path) -> Architecture:
    """What `model_type` names. ModelFileError: it is not known, or a setting asks for what no model does."""
    name = config.get("model_type")
    if not isinstance(name, str) or name not in ARCHITECTURES:
        remedy = f"Supported: {', '.join(ARCHITECTURES)}; any other runs with --engine transformers"
        raise ModelFileError(
            path, "model_type", f"{shown(str(name)[:80])} is not supported yet", remedy=remedy
        )
    if config.get("quantization_config") is not None:
        raise ModelFileError(
            path,
            "quantization_config",
            "the weights are quantised in a way that is not supported yet",
            remedy="Take the model's original weights or a GGUF file of it, or add --engine transformers",
        )
    architecture = ARCHITECTURES[name]
    activation, computed = _ACTIVATIONS.get(architecture.name, ("hidden_act", ("silu", "swish")))
    for values, keys in (*_NOT_SUPPORTED, (computed, activation)):
        for key in keys.split():
            value = config.get(key)
            if value is not None and value not in values:
                raise ModelFileError(path, key, f"{shown(str(value)[:80])} is not supported yet")
    return architecture


def settings_of(config: Mapping[str, Any], path: Path) -> Settings:
    """The settings of a model whose architecture is known, with what those mean that are left out."""
    return Settings({**_DEFAULTS.get(config["model_type"], {}), **config}, path)


def metadata_of(config: Mapping[str, Any], path: Path, model_name: str) -> dict[str, Value]:
    """The keys of a GGUF file for this model. ModelFileError names the setting that is missing or odd."""
    architecture = architecture_of(config, path).name
    settings = settings_of(config, path)
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
    if rotated != 1.0 and architecture != "phi3":
        raise ModelFileError(settings.path, "partial_rotary_factor", f"{rotated} is not supported yet")
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
    if architecture == "gemma3":
        scale = settings.number("query_pre_attn_scalar")
        if scale <= 0:
            raise ModelFileError(settings.path, "query_pre_attn_scalar", f"is {scale}")
        if scale != head_dim:
            keys["attention.scale"] = scale**-0.5
    return keys | layer_keys(settings) | rope_keys(settings)
