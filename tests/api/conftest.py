from __future__ import annotations

from pathlib import Path

import pytest

import tokenglass as tg


@pytest.fixture
def model(tiny_model_path: Path) -> tg.LanguageModel:
    """The tiny model: 300 tokens, a window of 512, a chat template."""
    return tg.load(tiny_model_path, num_threads=1)
