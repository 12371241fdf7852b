"""Folders written by Transformers, against Transformers: logits in exact mode, from every kind of file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.models.oracle import assert_close, ours, truth
from tests.support.hf_models import save_model, tiny_model

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("form", ["safetensors", "shards", "bin"])
def test_a_llama_from_every_kind_of_file(tmp_path: Path, form: str) -> None:
    model = tiny_model("llama")
    folder = save_model(model, tmp_path, form=form)
    if form == "shards":
        assert len(list(folder.glob("model-*.safetensors"))) > 3
    assert_close(ours(folder), truth(model))


LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 5000.0, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 64,
}  # fmt: skip


@pytest.mark.parametrize(
    "settings",
    [
        {"num_key_value_heads": 6},
        {"num_key_value_heads": 1, "num_attention_heads": 3, "head_dim": 32},
        {"tie_word_embeddings": True},
        {"rms_norm_eps": 1e-3},
        {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}},
        {"rope_parameters": LLAMA3},
        {"head_dim": 48, "num_attention_heads": 4},
    ],
    ids=str,
)
def test_llamas_of_other_shapes(tmp_path: Path, settings: dict[str, Any]) -> None:
    model = tiny_model("llama", **settings)
    assert_close(ours(save_model(model, tmp_path)), truth(model))


@pytest.mark.parametrize("is_tied", [True, False])
def test_the_tensors_decide_whether_the_head_is_the_embedding(tmp_path: Path, is_tied: bool) -> None:
    """C01: not the flag, which may be wrong."""
    model = tiny_model("llama", tie_word_embeddings=is_tied)
    path = save_model(model, tmp_path) / "config.json"
    config = json.loads(path.read_text())
    assert config["tie_word_embeddings"] is is_tied
    path.write_text(json.dumps({**config, "tie_word_embeddings": not is_tied}))
    assert_close(ours(tmp_path), truth(model))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_runs_as_it_is(tmp_path: Path, dtype: str) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    save_model(tiny_model("llama").to(getattr(torch, dtype)), tmp_path)
    model = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)  # its rotation unrounded
    assert_close(ours(tmp_path), truth(model))
