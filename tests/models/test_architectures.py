"""Every architecture as Transformers writes it: logits and greedy tokens in exact mode against its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.models.oracle import IDS, assert_close, assert_greedy_equal, ours, truth
from tests.support.hf_models import save_model, tiny_model
from tokenglass.formats import open_model
from tokenglass.formats.write_gguf import write_gguf

pytestmark = pytest.mark.oracle

MODELS: list[tuple[str, dict[str, Any]]] = [
    ("llama", {"attention_bias": True, "mlp_bias": True}),
    ("mistral", {"sliding_window": 64}),
    ("qwen2", {}),
    ("qwen2", {"tie_word_embeddings": True, "num_key_value_heads": 6}),
    ("qwen3", {}),
    ("qwen3", {"num_key_value_heads": 6, "tie_word_embeddings": True, "attention_bias": True}),
    ("phi3", {}),
    ("phi3", {"sliding_window": 64, "partial_rotary_factor": 0.75}),
    ("gpt2", {}),
    ("gpt2", {"n_head": 3, "n_inner": 160}),
    ("gemma3_text", {}),
    ("gemma3_text", {"num_key_value_heads": 6, "query_pre_attn_scalar": 50, "num_hidden_layers": 12}),
    ("qwen2", {"num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 48}),
]


@pytest.mark.parametrize(("kind", "settings"), MODELS, ids=str)
def test_logits_and_greedy_tokens_are_equal(tmp_path: Path, kind: str, settings: dict[str, Any]) -> None:
    model = tiny_model(kind, **settings)
    folder = save_model(model, tmp_path)
    expected = truth(model)
    assert_close(ours(folder), expected)
    assert_close(ours(folder, chunk=300), expected)  # in one piece
    assert_greedy_equal(folder, model)


@pytest.mark.parametrize("kind", sorted({kind for kind, _ in MODELS}))
def test_a_folder_written_as_gguf_gives_the_same_bits(tmp_path: Path, kind: str) -> None:
    folder = save_model(tiny_model(kind), tmp_path / "folder")
    with open_model(folder) as source:
        write_gguf(tmp_path / "m.gguf", source)
    assert np.array_equal(ours(tmp_path / "m.gguf"), ours(folder))


@pytest.mark.parametrize("window", [1, 2, 15, 16, 17, 255, 256, 257, 299, 300])
def test_a_row_sees_exactly_its_window(tmp_path: Path, window: int) -> None:
    model = tiny_model("mistral", sliding_window=window)
    assert_close(ours(save_model(model, tmp_path)), truth(model))


LONG, SHORT = [1.0 + i for i in range(8)], [1.0 + i / 10 for i in range(8)]
SCALINGS: dict[str, dict[str, Any]] = {
    "linear": {"factor": 3.0},
    "llama3": {
        "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    },
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 128},
    "yarn, its own numbers": {
        "factor": 4.0, "original_max_position_embeddings": 128, "beta_fast": 20.0, "beta_slow": 2.0,
        "attention_factor": 1.3,
    },
    "yarn, magnitudes": {
        "factor": 4.0, "original_max_position_embeddings": 128, "mscale": 0.7, "mscale_all_dim": 0.5,
    },
    "longrope": {"long_factor": LONG, "short_factor": SHORT, "original_max_position_embeddings": 64},
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name"), [*(("llama", name) for name in SCALINGS), ("qwen3", "yarn"), ("phi3", "longrope")]
)
def test_scaled_rotations(tmp_path: Path, kind: str, name: str) -> None:
    rope = {"rope_type": name.split(",")[0], "rope_theta": 5000.0, **SCALINGS[name]}
    model = tiny_model(kind, rope_parameters=rope)
    assert_close(ours(save_model(model, tmp_path)), truth(model))


def test_longrope_of_a_short_window(tmp_path: Path) -> None:
    """A window as long as the original one takes the short divisors."""
    rope = {"rope_type": "longrope", "rope_theta": 5000.0, **SCALINGS["longrope"]}
    model = tiny_model("llama", rope_parameters={**rope, "original_max_position_embeddings": 304})
    assert_close(ours(save_model(model, tmp_path), num_pages=19), truth(model))


def test_the_base_of_dynamic_rotations_grows_with_the_window(tmp_path: Path) -> None:
    """Transformers goes by the text and we by the window: so the text fills the window."""
    import torch

    rope = {"rope_type": "dynamic", "rope_theta": 5000.0, "factor": 4.0}
    model = tiny_model("llama", rope_parameters=rope, max_position_embeddings=128)
    ids = [*IDS, 1, 2, 3, 4]
    with torch.no_grad():
        expected = model(torch.tensor([ids])).logits[0].numpy()[: len(IDS)]
    folder = save_model(model, tmp_path)
    assert_close(ours(folder, num_pages=19), expected)
    assert np.abs(ours(folder, num_pages=32) - expected).max() > 1e-2 * np.abs(expected).max()
