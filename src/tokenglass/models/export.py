"""A model's shape as the `config.json` of a Hugging Face folder: `formats/hf_config.py` backwards.

Whether nothing was lost is not argued but tried: `same_model` reads the written folder and compares. So a
model that has no words there (a window in some layers of a llama, unknown divisors) is refused by name.
Settings: https://huggingface.co/docs/transformers, its configuration classes (Apache-2.0).
"""

from __future__ import annotations

from dataclasses import asdict
from math import isclose
from typing import Any

import numpy as np

from tokenglass.errors import ModelFileError
from tokenglass.formats import ModelSource
from tokenglass.formats.hf_export import ROPE_FACTORS
from tokenglass.formats.hf_rope import rope_tensors
from tokenglass.formats.hf_settings import Settings
from tokenglass.models.config import DecoderConfig, read_config
from tokenglass.models.gemma3 import local_rope, score_scale

CLASSES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "smollm3": "SmolLM3ForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "gemma3_text": "Gemma3ForCausalLM",
    "phi3": "Phi3ForCausalLM",
    "gpt2": "GPT2LMHeadModel",
}
TOKENS = {"bos": "bos", "eos": "eos", "pad": "padding"}  # GGUF's names
KINDS = ("full_attention", "sliding_attention")
# of Llama 3.1 and 3.2: the only divisors that are known with the numbers they were made from
LLAMA3_FACTORS = (8.0, 32.0)
CLOSE = 1e-5  # a number of a GGUF is a float32


def config_json(file: ModelSource) -> dict[str, Any]:
    """The settings of the model in `file`. ModelFileError: its architecture is not supported."""
    config = read_config(file)
    num_rows = file.tensors["token_embd.weight"].shape[0]
    shared = {
        "vocab_size": num_rows,
        "tie_word_embeddings": "output.weight" not in file.tensors,
        **{f"{ours}_token_id": _token_id(file, key, num_rows) for ours, key in TOKENS.items()},
    }
    settings = _gpt2(config) if config.architecture == "gpt2" else _decoder(file, config)
    model_type = settings["model_type"]
    return {"architectures": [CLASSES[model_type]], **settings, **shared}


def same_model(file: ModelSource, written: ModelSource) -> None:
    """ModelFileError names what of `file` the folder `written` does not say again."""
    ours, theirs = read_config(file), read_config(written)
    for key, value in _numbers(ours).items():
        if not _is_close(value, _numbers(theirs).get(key)):
            raise ModelFileError(file.path, key, "cannot be said in a config.json")
    for name in ROPE_FACTORS:
        if name in file.tensors and not (
            name in written.tensors and np.allclose(file.floats(name), written.floats(name), rtol=CLOSE)
        ):
            raise ModelFileError(file.path, f"tensor {name}", "cannot be said in a config.json")


def _token_id(file: ModelSource, key: str, num_rows: int) -> int | None:
    """Said even where there is none: a class of Transformers has ids of its own for what is left out."""
    token_id = file.get(f"tokenizer.ggml.{key}_token_id", int, default=None)
    return token_id if token_id is not None and 0 <= token_id < num_rows else None


def _numbers(config: DecoderConfig) -> dict[str, Any]:
    """Everything that changes what is computed, by its name."""
    numbers = asdict(config)
    rope = numbers.pop("rope")
    if rope["scaling"] == "longrope":
        del rope["factor"]  # its divisors are tensors
    is_turned = config.architecture != "gpt2"
    return {**numbers, **({f"rope.{key}": value for key, value in rope.items()} if is_turned else {})}


def _is_close(a: Any, b: Any) -> bool:
    return isclose(a, b, rel_tol=CLOSE) if isinstance(a, float) and isinstance(b, float) else a == b


def _gpt2(config: DecoderConfig) -> dict[str, Any]:
    return {
        "model_type": "gpt2",
        "n_embd": config.hidden,
        "n_layer": config.num_layers,
        "n_head": config.num_heads,
        "n_inner": config.ffn,
        "n_positions": config.context_length,
        "layer_norm_epsilon": _short(config.norm_eps),
        "activation_function": "gelu_new",
    }


def _decoder(file: ModelSource, config: DecoderConfig) -> dict[str, Any]:
    arch, window = config.architecture, max(config.windows)
    model_type = {"gemma3": "gemma3_text", "llama": "mistral" if window else "llama"}.get(arch, arch)
    settings: dict[str, Any] = {
        "model_type": model_type,
        "hidden_size": config.hidden,
        "intermediate_size": config.ffn,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.num_kv_heads,
        "head_dim": config.head_dim,
        "max_position_embeddings": config.context_length,
        "rms_norm_eps": _short(config.norm_eps),
        "sliding_window": window or None,
    }
    has_bias = "blk.0.attn_q.bias" in file.tensors
    if model_type == "mistral" and has_bias:
        raise ModelFileError(file.path, "tensor blk.0.attn_q.bias", "cannot be said in a config.json")
    if model_type in ("llama", "smollm3", "qwen3"):
        settings["attention_bias"] = has_bias
    if model_type in ("llama", "smollm3"):
        settings["mlp_bias"] = "blk.0.ffn_up.bias" in file.tensors
    if model_type in ("qwen2", "qwen3", "smollm3"):
        settings |= {"use_sliding_window": bool(window), "max_window_layers": config.num_layers}
    if model_type in ("qwen2", "qwen3", "smollm3", "gemma3_text"):
        settings["layer_types"] = [KINDS[slides != 0] for slides in config.windows]
    if model_type == "smollm3":
        settings["no_rope_layers"] = [int(turned) for turned in config.turned]
    if model_type == "gemma3_text":
        settings |= {
            "hidden_activation": "gelu_pytorch_tanh",
            "query_pre_attn_scalar": _whole_square(score_scale(config, file), file),
            "rope_local_base_freq": local_rope(config, file).base,
        }
    else:
        settings["hidden_act"] = "silu"
    return settings | _rope(file, config)


def _whole_square(scale: float, file: ModelSource) -> int:
    """1 / scale^2, which Transformers wants as a whole number."""
    square = scale**-2
    if not isclose(square, round(square), rel_tol=CLOSE):
        raise ModelFileError(file.path, "gemma3.attention.scale", "cannot be said in a config.json")
    return round(square)


def _rope(file: ModelSource, config: DecoderConfig) -> dict[str, Any]:
    """The rotation, in the words of before Transformers 5, which it still reads."""
    rope = config.rope
    settings: dict[str, Any] = {"rope_theta": rope.base}
    if rope.dims != config.head_dim:
        settings["partial_rotary_factor"] = rope.dims / config.head_dim
    scaling: dict[str, Any] = {"rope_type": rope.scaling, "factor": rope.factor}
    original = {"original_max_position_embeddings": rope.original_context}
    match rope.scaling:
        case "none":
            return settings | _llama3(file, rope.dims // 2, rope.base)
        case "dynamic":
            settings |= {"max_position_embeddings": rope.original_context}
        case "yarn":
            scaling |= original | {"beta_fast": rope.beta_fast, "beta_slow": rope.beta_slow}
            scaling["attention_factor"] = rope.attention_factor
        case "longrope":
            scaling = {"rope_type": "longrope", "attention_factor": rope.attention_factor}
            for length in ("short", "long"):
                factors = file.floats(f"rope_factors_{length}.weight")
                scaling[f"{length}_factor"] = [_short(value) for value in factors.tolist()]
            settings |= original
    return settings | {"rope_scaling": scaling}


def _llama3(file: ModelSource, half: int, base: float) -> dict[str, Any]:
    """The numbers behind a tensor of divisors, where they are known ones; `same_model` refuses others."""
    if "rope_freqs.weight" not in file.tensors:
        return {}
    stored = file.floats("rope_freqs.weight")
    for factor in LLAMA3_FACTORS:
        scaling = {
            "rope_type": "llama3",
            "factor": factor,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        }
        made = rope_tensors(Settings({"rope_theta": base, "rope_scaling": scaling}, file.path), half)
        if np.allclose(made["rope_freqs.weight"], stored, rtol=CLOSE):
            return {"rope_scaling": scaling}
    return {}


def _short(value: float) -> float:
    """The shortest number that is the same float32: 1e-06, not 9.99999997e-07."""
    return float(str(np.float32(value)))
