"""Every setting that Transformers knows of an architecture is used, refused, or known to change nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tokenglass.errors import ModelFileError
from tokenglass.formats.hf_config import metadata_of, settings_of
from tokenglass.formats.hf_names import ARCHITECTURES
from tokenglass.formats.hf_rope import rope_tensors

pytestmark = pytest.mark.oracle

HARMLESS = {
    # of training, or of what a call returns
    "attention_dropout", "resid_pdrop", "embd_pdrop", "attn_pdrop", "initializer_range",
    "output_hidden_states", "output_attentions", "return_dict", "use_cache", "chunk_size_feed_forward",
    "pretraining_tp",
    # of heads that classify and summarise
    "id2label", "label2id", "problem_type", "summary_type", "summary_use_proj", "summary_activation",
    "summary_proj_to_labels", "summary_first_dropout",
    # of the file
    "transformers_version", "architectures", "_name_or_path", "dtype",
    # of the tokenizer, which has its own files
    "pad_token_id", "bos_token_id", "eos_token_id",
    # the tensors decide, no flag
    "tie_word_embeddings", "attention_bias", "mlp_bias",
    # half precision is rounded elsewhere; we have none
    "reorder_and_upcast_attn",
}  # fmt: skip
WINDOW: dict[str, Any] = {"sliding_window": 64}  # where a change shows only beside a window
LONGROPE = {"rope_type": "longrope", "short_factor": [1.0] * 48, "long_factor": [2.0] * 48}
MORE: dict[str, dict[str, Any]] = {
    "qwen2": {**WINDOW, "use_sliding_window": True, "max_window_layers": 2},
    "qwen3": {**WINDOW, "use_sliding_window": True, "max_window_layers": 2},
    "smollm3": {**WINDOW, "use_sliding_window": True},
    "gemma3_text": WINDOW, "mistral": WINDOW, "phi3": {**WINDOW, "rope_parameters": LONGROPE},
}  # fmt: skip
OTHER: dict[str, Any] = {  # another value than the usual one, where that is no number and no bool
    "hidden_act": "gelu", "hidden_activation": "gelu", "activation_function": "gelu", "n_inner": 7,
    "rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0},
    "final_logit_softcapping": 30.0, "attn_logit_softcapping": 50.0, "no_rope_layers": [1, 1, 0, 0, 1, 1],
    "layer_types": ["full_attention", "sliding_attention"] * 3,
}  # fmt: skip

DEPENDENT = ("layer_types", "short_factor")  # lists, whose lengths are another setting


def settings(model_type: str) -> dict[str, Any]:
    """Every setting of this model_type, as Transformers writes it, of a model of six layers."""
    from transformers import AutoConfig

    layers = {"n_layer" if model_type == "gpt2" else "num_hidden_layers": 6}
    config: dict[str, Any] = AutoConfig.for_model(model_type, **layers, **MORE.get(model_type, {})).to_dict()
    return config


def seen(config: dict[str, Any]) -> dict[str, Any]:
    """What our models get to see: keys, and tensors that are made of settings."""
    path = Path("config.json")
    keys: dict[str, Any] = metadata_of(config, path, "tiny")
    half = int(keys.get(f"{keys['general.architecture']}.rope.dimension_count", 0)) // 2
    tensors = rope_tensors(settings_of(config, path), half) if half else {}
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in {**keys, **tensors}.items()
    }


def changed(key: str, value: Any) -> Any:
    if key in OTHER:
        return OTHER[key]
    if isinstance(value, bool):
        return not value
    return value * 2 if isinstance(value, int | float) else 3


def outcome(config: dict[str, Any]) -> dict[str, Any] | str:
    """What is seen, or the field that is refused."""
    try:
        return seen(config)
    except ModelFileError as error:
        return error.field


@pytest.mark.parametrize("model_type", sorted(ARCHITECTURES))
def test_a_setting_is_used_or_refused_or_harmless(model_type: str) -> None:
    config = settings(model_type)
    usual, ignored = seen(config), {}
    for key in config.keys() - HARMLESS - {"model_type"}:
        other = {**config, key: changed(key, config[key])}
        if key != "layer_types":
            other.pop("layer_types", None)  # made of the others
        if key in ("no_rope_layer_interval", "num_hidden_layers"):
            other.pop("no_rope_layers", None)
        result = outcome(other)
        if result == usual or (isinstance(result, str) and result not in (key, *DEPENDENT)):
            ignored[key] = result
    assert not ignored


@pytest.mark.parametrize("model_type", sorted(ARCHITECTURES))
def test_a_setting_that_is_left_out_means_what_transformers_takes(model_type: str) -> None:
    """Or it is refused by its name."""
    from transformers import AutoConfig

    config, wrong = settings(model_type), {}
    for key in config.keys() - {"model_type"}:
        less = {other: value for other, value in config.items() if other not in (key, "layer_types")}
        full = {**less, "layer_types": None} if "layer_types" in config else less
        result = outcome(less)
        if result != key and result != seen(AutoConfig.for_model(**full).to_dict()):
            wrong[key] = result
    assert not wrong
