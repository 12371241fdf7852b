"""A Hugging Face folder from its files to text: the same answer as from a GGUF of the same weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.hf_tokenizer import write_tokenizer
from tests.support.tiny_llama import TinyLlama, tiny_weights, write_tiny_llama
from tokenglass.engine import Request, load
from tokenglass.errors import ParameterError
from tokenglass.formats.hf_names import LLAMA
from tokenglass.formats.write_safetensors import write_safetensors
from tokenglass.models.weights import unpermuted_rows

SHAPE = TinyLlama(tied=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny llama as a folder, its rows of q and k in Hugging Face's order."""
    folder = tmp_path_factory.mktemp("tiny-llama")
    tensors = {}
    for name, values in tiny_weights(SHAPE).items():
        kind = name.split(".")[-2]
        if kind in ("attn_q", "attn_k"):
            values = values[unpermuted_rows(len(values) // SHAPE.head_dim, SHAPE.head_dim)]
        tensors[str(LLAMA.hf_name(name))] = values
    write_safetensors(folder / "model.safetensors", tensors)
    config = {
        "model_type": "llama", "hidden_size": SHAPE.hidden, "intermediate_size": SHAPE.ffn,
        "num_hidden_layers": SHAPE.num_layers, "num_attention_heads": SHAPE.num_heads,
        "num_key_value_heads": SHAPE.num_kv_heads, "rms_norm_eps": 1e-5, "rope_theta": 10000,
        "max_position_embeddings": 512, "vocab_size": len(tensors["lm_head.weight"]),
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    return write_tokenizer(folder, vocab_size=290)


def answer(path: Path, **options: Any) -> list[int]:
    engine = load(path, num_threads=1, **options)
    pieces = engine.stream(Request(prompt_ids=[70, 71, 72], max_tokens=24, ignore_end=True))
    return [token for piece in pieces for token in piece.token_ids]


def test_a_folder_answers_as_its_gguf_does(folder: Path, tmp_path: Path) -> None:
    expected = answer(write_tiny_llama(tmp_path / "tiny.gguf", shape=SHAPE))
    assert answer(folder) == expected
    assert answer(folder, weights="f32") == expected


def test_weights_are_made_as_asked_and_it_is_said(folder: Path, tmp_path: Path) -> None:
    q8 = write_tiny_llama(tmp_path / "q8.gguf", shape=SHAPE, weight_type="Q8_0")
    assert answer(folder, weights="q8") == answer(q8)
    assert load(folder, weights="q8").model.notes == ["16 tensors of type F32 are loaded as Q8_0"]
    with pytest.raises(ParameterError, match="weights must be one of f32, bf16, q8, q4, not 'q5'"):
        load(folder, weights="q5")  # type: ignore[arg-type]


def test_text_goes_in_and_out(folder: Path) -> None:
    engine = load(folder)
    assert engine.tokenizer.decode(engine.tokenizer.encode("Paris 北京")) == "Paris 北京"
