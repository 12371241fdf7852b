"""A result with known numbers, and an engine small enough to measure inside a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.tiny_llama import TinyLlama, write_tiny_llama
from tokenglass.bench.ours import Ours
from tokenglass.engine import load


@pytest.fixture(scope="session")
def roomy_model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model with room for the bench's prompts."""
    path = tmp_path_factory.mktemp("models") / "roomy.gguf"
    return write_tiny_llama(path, weight_type="Q4_1", shape=TinyLlama(context_length=1024))


@pytest.fixture(scope="session")
def ours(roomy_model_path: Path) -> Ours:
    return Ours(load(roomy_model_path, num_threads=1))


@pytest.fixture
def record() -> dict[str, Any]:
    """Three rounds in which the first was slow for both engines."""
    return {
        "time": "2026-01-02T03:04:05+00:00",
        "commit": "0123456789ab",
        "version": "0.1.0",
        "machine": {"cpu": "A processor", "cores": 2, "num_threads": 2, "isa": "avx2"},
        "model": "tiny.gguf",
        "plan": {
            "rounds": 3, "prefills": [512], "depths": [0], "rows": [8], "decode": 64, "cold_starts": 2,
        },
        "peers": [
            {
                "name": "llama.cpp", "kind": "llama.cpp", "variant": "",
                "version": "llama-cpp-python 0.3.36", "how": "at its best",
            },
        ],
        "results": {
            "memory_bytes": {
                "tokenglass": [172_000_000, 172_000_000],
                "llama.cpp": [207_000_000, 207_000_000],
            },
            "prefill_512_tokens_per_s": {
                "tokenglass": [1000.0, 2400.0, 2000.0],
                "llama.cpp": [200.0, 300.0, 310.0],
            },
            "decode_0_share": {"tokenglass": [0.5, 0.91, 0.9]},
            "decode_0_tokens_per_s": {"tokenglass": [150.0, 301.0, 300.0], "llama.cpp": [50.0, 100.0, 120.0]},
            "int8_per_s": {"tokenglass": [4e11, 3.9e11, 4.1e11]},
        },
        "sha256": "abcdefabcdef",
    }  # fmt: skip
