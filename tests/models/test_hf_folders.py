"""Folders written by Transformers, against Transformers: logits in exact mode, from every kind of file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.models.support import all_logits, bind
from tests.support.hf_models import VOCAB, save_model, tiny_model
from tokenglass.errors import ModelFileError

pytestmark = pytest.mark.oracle
NUM_POSITIONS = 300
IDS = np.random.default_rng(0).integers(0, VOCAB, NUM_POSITIONS).tolist()


def truth(model: Any) -> NDArray[np.float32]:
    import torch

    with torch.no_grad():
        logits: NDArray[np.float32] = model(torch.tensor([IDS])).logits[0].numpy()
    return logits


def ours(folder: Path) -> NDArray[np.float32]:
    return all_logits(bind(folder, exact=True, kv="f32"), IDS, chunk=97)


def assert_close(a: NDArray[np.float32], b: NDArray[np.float32]) -> None:
    assert np.abs(b).max() > 1
    assert np.abs(a - b).max() <= 1e-4 * np.abs(b).max()


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


def test_mistral_is_a_llama_unless_it_looks_through_a_window(tmp_path: Path) -> None:
    model = tiny_model("mistral")
    assert_close(ours(save_model(model, tmp_path)), truth(model))
    save_model(tiny_model("mistral", sliding_window=64), tmp_path)
    with pytest.raises(ModelFileError, match="sliding_window: 64 is not supported yet"):
        bind(tmp_path)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_runs_as_it_is(tmp_path: Path, dtype: str) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    save_model(tiny_model("llama").to(getattr(torch, dtype)), tmp_path)
    model = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)  # its rotation unrounded
    assert_close(ours(tmp_path), truth(model))
