"""Folders of every architecture, converted to GGUF: llama.cpp's logits on them are Transformers' own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.models.oracle import IDS, truth
from tests.support.hf_models import save_model, tiny_model
from tests.support.hf_tokenizer import write_tokenizer
from tokenglass.cli.convert import to_gguf
from tokenglass.formats import open_model

pytestmark = [pytest.mark.peers, pytest.mark.oracle]
NUM_POSITIONS = 100


@pytest.mark.parametrize(
    "kind", ["llama", "mistral", "smollm3", "qwen2", "qwen3", "gemma3_text", "phi3", "gpt2"]
)
def test_llama_cpp_agrees_with_transformers(tmp_path: Path, kind: str) -> None:
    import llama_cpp

    model = tiny_model(kind)
    save_model(model, tmp_path)
    write_tokenizer(tmp_path)
    with open_model(tmp_path) as source:
        to_gguf(source, tmp_path / "tiny.gguf", None)
    peer = llama_cpp.Llama(
        str(tmp_path / "tiny.gguf"),
        n_ctx=128,
        n_threads=1,
        logits_all=True,
        verbose=False,
        type_k=0,
        type_v=0,
    )
    peer.eval(IDS[:NUM_POSITIONS])
    expected = truth(model)[:NUM_POSITIONS]
    error = np.abs(peer.scores[:NUM_POSITIONS] - expected).max()
    assert error <= 1e-3 * np.abs(expected).max()
