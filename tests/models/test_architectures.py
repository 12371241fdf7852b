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
    ("llama", {"num_key_value_heads": 6, "tie_word_embeddings": True}),
    ("llama", {"num_attention_heads": 4, "head_dim": 48}),
    ("mistral", {"sliding_window": 64}),
    ("mistral", {"num_key_value_heads": 6, "head_dim": 32}),
    ("smollm3", {}),
    ("smollm3", {"num_key_value_heads": 6, "no_rope_layers": [0, 1, 1, 0, 1], "tie_word_embeddings": False}),
    ("smollm3", {"sliding_window": 64, "use_sliding_window": True, "attention_bias": True}),
    ("qwen2", {}),
    ("qwen2", {"tie_word_embeddings": True, "num_key_value_heads": 6}),
    ("qwen2", {"num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 48}),
    ("qwen2", {"sliding_window": 64, "use_sliding_window": True, "max_window_layers": 1}),
    ("qwen3", {}),
    ("qwen3", {"num_key_value_heads": 6, "tie_word_embeddings": True, "attention_bias": True}),
    ("qwen3", {"sliding_window": 64, "use_sliding_window": True, "max_window_layers": 2}),
    ("phi3", {"num_key_value_heads": 6}),
    ("phi3", {"sliding_window": 64, "partial_rotary_factor": 0.75}),
    ("gpt2", {}),
    ("gpt2", {"n_head": 3, "n_inner": 160}),
    ("gemma3_text", {}),
    ("gemma3_text", {"num_key_value_heads": 6, "query_pre_attn_scalar": 50, "num_hidden_layers": 12}),
    ("gemma3_text", {"layer_types": ["full_attention", "sliding_attention"] * 2, "num_hidden_layers": 4}),
]


def as_gguf(folder: Path) -> Path:
    """The same model in one file."""
    with open_model(folder) as source:
        write_gguf(folder / "m.gguf", source)
    return folder / "m.gguf"


@pytest.mark.parametrize(("kind", "settings"), MODELS, ids=str)
def test_logits_and_greedy_tokens_are_equal(tmp_path: Path, kind: str, settings: dict[str, Any]) -> None:
    """In pieces, in one piece, token by token; from a folder and from a GGUF with the same bits."""
    model = tiny_model(kind, **settings)
    folder = save_model(model, tmp_path)
    expected, logits = truth(model), ours(folder)
    assert_close(logits, expected)
    assert np.array_equal(ours(folder, chunk=300), logits)
    assert np.array_equal(ours(as_gguf(folder)), logits)
    assert_greedy_equal(folder, model)


SLIDING: dict[str, dict[str, Any]] = {
    "mistral": {}, "phi3": {}, "gemma3_text": {}, "smollm3": {"use_sliding_window": True},
    "qwen2": {"use_sliding_window": True, "max_window_layers": 1},
    "qwen3": {"use_sliding_window": True, "max_window_layers": 1},
}  # fmt: skip


@pytest.mark.parametrize("window", [1, 2, 15, 16, 17, 255, 256, 257, 299, 300])
def test_a_row_sees_exactly_its_window(tmp_path: Path, window: int) -> None:
    model = tiny_model("mistral", sliding_window=window)
    assert_close(ours(save_model(model, tmp_path)), truth(model))


@pytest.mark.parametrize("kind", SLIDING)
def test_a_window_is_exact_in_every_architecture(tmp_path: Path, kind: str) -> None:
    """Rows before, at and behind the end of the window; one position more or less is another model."""
    window, found = 64, []
    for width in (window - 1, window, window + 1):
        model = tiny_model(kind, sliding_window=width, **SLIDING[kind])
        found.append((ours(save_model(model, tmp_path / str(width))), truth(model)))
        assert_close(*found[-1])
    (less, _), (logits, expected), (more, _) = found
    for row in (window - 2, window - 1, window, window + 1):
        assert np.abs(logits[row] - expected[row]).max() <= 1e-4 * np.abs(expected[row]).max()
    assert np.array_equal(less[: window - 1], logits[: window - 1])
    assert np.array_equal(more[:window], logits[:window])
    assert not np.array_equal(less[window - 1], logits[window - 1])
    assert not np.array_equal(more[window], logits[window])


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


TURNED = ("llama", "mistral", "smollm3", "qwen2", "qwen3")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((kind, name) for kind in TURNED for name in SCALINGS),
        ("phi3", "longrope"),
        ("gemma3_text", "linear"),
        ("gemma3_text", "yarn"),
    ],
)
def test_scaled_rotations(tmp_path: Path, kind: str, name: str) -> None:
    rope: dict[str, Any] = {"rope_type": name.split(",")[0], "rope_theta": 5000.0, **SCALINGS[name]}
    if kind == "gemma3_text":
        rope = {"full_attention": rope, "sliding_attention": {"rope_type": "default", "rope_theta": 700.0}}
    model = tiny_model(kind, rope_parameters=rope, head_dim=16)
    folder = save_model(model, tmp_path)
    assert_close(ours(folder), truth(model))
    assert_close(ours(as_gguf(folder)), truth(model))


def test_longrope_of_a_short_window(tmp_path: Path) -> None:
    """A window as long as the original one takes the short divisors."""
    rope = {"rope_type": "longrope", "rope_theta": 5000.0, **SCALINGS["longrope"]}
    model = tiny_model("llama", rope_parameters={**rope, "original_max_position_embeddings": 304})
    assert_close(ours(save_model(model, tmp_path), num_pages=19), truth(model))


def dynamic(positions: int) -> Any:
    rope = {"rope_type": "dynamic", "rope_theta": 5000.0, "factor": 4.0}
    return tiny_model("llama", rope_parameters=rope, max_position_embeddings=positions)


def test_dynamic_rotations_of_a_short_window_are_the_usual_ones(tmp_path: Path) -> None:
    model = dynamic(304)
    assert_close(ours(save_model(model, tmp_path), num_pages=19), truth(model))


def test_the_base_of_dynamic_rotations_grows_with_the_window(tmp_path: Path) -> None:
    """Transformers goes by the text and we by the window: so the text fills the window."""
    import torch

    model, ids = dynamic(128), [*IDS, 1, 2, 3, 4]
    with torch.no_grad():
        expected = model(torch.tensor([ids])).logits[0].numpy()[: len(IDS)]
    folder = save_model(model, tmp_path)
    assert_close(ours(folder, num_pages=19), expected)
    assert np.abs(ours(folder, num_pages=32) - expected).max() > 1e-2 * np.abs(expected).max()
