"""A Hugging Face folder from its files to text: the same answer as from a GGUF of the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.hf_folder import write_tiny_folder
from tests.support.tiny_llama import TinyLlama, write_tiny_llama
from tokenglass.engine import Request, load
from tokenglass.errors import ParameterError

SHAPE = TinyLlama(tied=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_folder(tmp_path_factory.mktemp("tiny-llama"), SHAPE)


def answer(path: Path, **options: Any) -> list[int]:
    engine = load(path, num_threads=1, **options)
    pieces = engine.stream(Request(prompt_ids=[70, 71, 72], max_tokens=24, ignore_eos=True))
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
