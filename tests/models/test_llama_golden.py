"""The exact mode against Transformers in float32 on the default model: from a golden file, and live.

Also the default mode against its numpy twin, and every instruction set, on the real weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.models.make_golden import GOLDEN, NUM_GREEDY, SAMPLED_IDS, Reference
from tests.models.prompts import GREEDY_PROMPTS, LONG_TEXT
from tests.models.support import all_logits, bind
from tokenglass import kernels
from tokenglass.engine import Request, load
from tokenglass.kernels import reference
from tokenglass.models.decoder import Decoder

pytestmark = pytest.mark.real_models
TOLERANCE = 1e-4  # of a row's largest magnitude


@pytest.fixture(scope="module")
def golden() -> Iterator[dict[str, NDArray[np.generic]]]:
    with np.load(GOLDEN) as file:
        yield dict(file)


@pytest.fixture(scope="module")
def exact_model(real_model_path: Path) -> Decoder:
    return bind(real_model_path, exact=True, kv="f32")


def test_exact_logits_agree_with_the_golden_file(
    exact_model: Decoder, golden: dict[str, NDArray[np.float32]]
) -> None:
    logits = all_logits(exact_model, golden["ids"].tolist(), chunk=64)
    error = np.abs(logits[:, SAMPLED_IDS] - golden["logits"]).max(axis=1)
    assert (error <= TOLERANCE * golden["largest"]).all()
    assert np.array_equal(logits.argmax(axis=1), golden["best"])


def test_200_greedy_tokens_of_three_prompts_are_equal(
    real_model_path: Path, golden: dict[str, NDArray[np.int32]]
) -> None:
    engine = load(real_model_path, activations="f32", kv="f32", context_length=512)
    for prompt, expected in zip(GREEDY_PROMPTS, golden["greedy"].tolist(), strict=True):
        ids = engine.tokenizer.encode(prompt)
        pieces = engine.stream(Request(prompt_ids=ids, max_tokens=NUM_GREEDY, ignore_eos=True))
        assert [token for piece in pieces for token in piece.token_ids] == expected


def test_the_default_mode_and_its_numpy_twin_draw_the_same_ids(real_model_path: Path) -> None:
    fast, twin = bind(real_model_path), bind(real_model_path, ops=reference, max_rows=64)
    with_ids = [504, 3575, 282, 4649, 314]  # "The capital of France is"
    a, b = all_logits(fast, with_ids), all_logits(twin, with_ids)
    assert np.array_equal(a, b)
    for _ in range(4):  # and on, token by token
        with_ids.append(int(a[-1].argmax()))
    assert np.array_equal(all_logits(fast, with_ids), all_logits(twin, with_ids))


@pytest.mark.parametrize("isa", kernels.runnable_isas())
def test_instruction_sets_and_chunks_agree_on_real_weights(
    real_model_path: Path, golden: dict[str, NDArray[np.int32]], isa: str
) -> None:
    num = 24 if isa == "plain" else 300
    ids = golden["ids"].tolist()[:num]
    expected = all_logits(bind(real_model_path), ids)
    assert np.array_equal(all_logits(bind(real_model_path, isa=isa, num_threads=3), ids, chunk=97), expected)


def test_the_default_mode_stays_close_to_the_exact_one(
    real_model_path: Path, golden: dict[str, NDArray[np.int32]]
) -> None:
    logits = all_logits(bind(real_model_path), golden["ids"].tolist())
    assert (logits.argmax(axis=1) == golden["best"]).mean() > 0.93


@pytest.mark.oracle
def test_exact_logits_and_greedy_tokens_agree_with_transformers(
    real_model_path: Path, exact_model: Decoder
) -> None:
    live = Reference(real_model_path)
    ids = live.encode(LONG_TEXT)[:300]
    expected = live.logits(ids)
    error = np.abs(all_logits(exact_model, ids) - expected).max(axis=1)
    assert (error <= TOLERANCE * np.abs(expected).max(axis=1)).all()
    engine = load(real_model_path, activations="f32", kv="f32", context_length=512)
    for prompt in GREEDY_PROMPTS:
        prompt_ids = live.encode(prompt)
        assert prompt_ids == engine.tokenizer.encode(prompt)
        pieces = engine.stream(Request(prompt_ids=prompt_ids, max_tokens=NUM_GREEDY, ignore_eos=True))
        assert [token for piece in pieces for token in piece.token_ids] == live.greedy(prompt_ids, NUM_GREEDY)
