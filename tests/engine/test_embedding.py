"""Embeddings: pooled rows after the final norm, against numpy and Transformers; alone as among others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.doubles import scripted_engine
from tests.support.hf_models import save_model, tiny_model
from tests.support.hf_tokenizer import write_tokenizer
from tokenglass.engine import Engine, Request, load
from tokenglass.engine.all_rows import all_rows
from tokenglass.engine.embedding import POOLINGS, embed
from tokenglass.errors import ContextFullError, ModelOutputError, ParameterError
from tokenglass.models.decoder import Decoder

TEXT = [(7 * i + 3) % 300 for i in range(70)]


@pytest.fixture
def engine(tiny_model_path: Path) -> Engine:
    return load(tiny_model_path, num_threads=1)


def test_pooling_is_that_of_the_rows(engine: Engine) -> None:
    model = engine.model
    assert isinstance(model, Decoder)
    rows = np.concatenate([model.last_hidden() for _ in all_rows(engine, TEXT)])
    assert rows.shape == (70, model.config.hidden)
    for pooling, expected in (("mean", rows.mean(0, np.float64)), ("last", rows[-1]), ("cls", rows[0])):
        found = embed(engine, TEXT, pooling=pooling, normalize=False)  # type: ignore[arg-type]
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        unit = embed(engine, TEXT, pooling=pooling)  # type: ignore[arg-type]
        assert unit.dtype == np.float32
        np.testing.assert_allclose(unit, expected / np.linalg.norm(expected), rtol=1e-5, atol=1e-8)
    engine.scheduler.pool.check([])


@pytest.mark.parametrize("pooling", POOLINGS)
def test_bits_are_the_same_alone_and_among_others(
    engine: Engine, tiny_model_path: Path, pooling: Any
) -> None:
    alone = embed(load(tiny_model_path, num_threads=2), TEXT, pooling=pooling)
    stream = engine.stream(Request(prompt_ids=[5, 6, 7], max_tokens=4))
    next(stream)
    for other in ([9], TEXT[:33]):
        embed(engine, other, pooling=pooling)
    np.testing.assert_array_equal(embed(engine, TEXT, pooling=pooling), alone)
    stream.close()


def test_what_cannot_be_embedded_is_refused(engine: Engine, tiny_model_path: Path) -> None:
    with pytest.raises(ParameterError, match="is empty"):
        embed(engine, [])
    with pytest.raises(ContextFullError):
        embed(engine, [5] * 513)
    with pytest.raises(ParameterError, match="mean, last or cls"):
        embed(engine, [5], pooling="max")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="must be tokenglass"):
        embed(scripted_engine(tiny_model_path, [5]), [5])


def test_a_number_that_is_none_names_its_place(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(engine.model, Decoder)
    rows = np.zeros((3, engine.model.config.hidden), np.float32)
    monkeypatch.setattr(engine.model, "last_hidden", lambda: rows)
    assert not embed(engine, [1, 2, 3]).any()
    rows[1, 2] = np.nan
    with pytest.raises(ModelOutputError, match="position 1"):
        embed(engine, [1, 2, 3])


@pytest.mark.oracle
@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3", "phi3", "gpt2", "gemma3_text"])
def test_vectors_are_those_of_transformers(tmp_path: Path, kind: str) -> None:
    import torch

    model = tiny_model(kind)
    folder = write_tokenizer(save_model(model, tmp_path))
    engine = load(folder, num_threads=1, activations="f32", kv="f32")
    ids = TEXT
    with torch.inference_mode():
        states = model(torch.tensor([ids]), output_hidden_states=True).hidden_states[-1][0].double()
    for pooling, expected in (("mean", states.mean(0)), ("last", states[-1]), ("cls", states[0])):
        vector = (expected / expected.norm()).numpy()
        np.testing.assert_allclose(embed(engine, ids, pooling=pooling), vector, atol=2e-5)  # type: ignore[arg-type]
