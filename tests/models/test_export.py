"""A GGUF as a folder: Transformers loads it, and its logits and ids are those of the file it came from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.models.oracle import assert_close, ours, truth
from tests.support.hf_models import save_model, tiny_model
from tests.support.hf_tokenizer import LINES, write_tokenizer
from tokenglass.cli.convert import to_folder, to_gguf
from tokenglass.formats import open_model
from tokenglass.tokens import Tokenizer

pytestmark = pytest.mark.oracle

LLAMA3 = {
    "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192, "rope_theta": 500000.0,
}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128, "rope_theta": 1e4}
LONG = {
    "rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0 + 0.1 * i for i in range(8)],
    "long_factor": [1.5 + 0.5 * i for i in range(8)], "original_max_position_embeddings": 128,
}  # fmt: skip
MODELS: list[tuple[str, dict[str, Any]]] = [
    ("llama", {"attention_bias": True, "mlp_bias": True, "num_attention_heads": 4, "head_dim": 48}),
    ("llama", {"rope_parameters": LLAMA3, "tie_word_embeddings": True}),
    ("llama", {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4}}),
    ("llama", {"rope_parameters": YARN}),
    ("mistral", {"sliding_window": 64}),
    ("smollm3", {}),
    ("smollm3", {"sliding_window": 64, "use_sliding_window": True}),
    ("qwen2", {"tie_word_embeddings": True}),
    ("qwen2", {"sliding_window": 64, "use_sliding_window": True, "max_window_layers": 1}),
    ("qwen3", {"num_key_value_heads": 6}),
    ("gemma3_text", {"query_pre_attn_scalar": 50}),
    ("phi3", {"sliding_window": 64, "partial_rotary_factor": 0.75}),
    ("phi3", {"rope_parameters": LONG, "original_max_position_embeddings": 128}),
    ("gpt2", {"n_inner": 160}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "settings"), MODELS, ids=str)
def test_transformers_loads_the_folder_and_agrees(
    tmp_path: Path, kind: str, settings: dict[str, Any]
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    original = tiny_model(kind, **settings)
    first, path, folder = tmp_path / "first", tmp_path / "m.gguf", tmp_path / "folder"
    write_tokenizer(save_model(original, first))
    with open_model(first) as source:
        to_gguf(source, path, None)
    with open_model(path) as source:
        to_folder(source, folder, None)
    loading: Any = AutoModelForCausalLM
    model = loading.from_pretrained(folder, dtype="auto", attn_implementation="eager").eval()
    expected = truth(model)
    assert_close(truth(original), expected)
    assert_close(ours(path), expected)
    assert np.array_equal(ours(folder), ours(path))

    tokenizer, theirs = Tokenizer.from_path(folder), AutoTokenizer.from_pretrained(folder)
    with open_model(path) as source:
        of_file = Tokenizer.from_gguf(source)
    for line in [*LINES, "  spaces\n\n and 12345\t", "émoji 😀 你好"]:
        ids = of_file.encode(line)
        assert tokenizer.encode(line) == ids == theirs.encode(line)
        assert theirs.decode(ids) == line
    assert theirs.eos_token_id == of_file.vocabulary.eos_id
    chat = [{"role": "user", "content": "Paris"}]
    assert theirs.apply_chat_template(chat, return_dict=False) == of_file.encode_chat(chat)
