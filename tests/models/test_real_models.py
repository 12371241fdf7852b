"""Real files in exact mode, against Transformers in float32 from the same file; a test for each prompt.

The reference reads our own tokens in one pass: where each of them is its best token too, its greedy text is
the same. A pair may differ where both are best.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tests.models.make_golden import Reference
from tests.models.prompts import LONG_TEXT
from tokenglass.engine import Engine, Request, load
from tokenglass.engine.all_rows import all_rows

pytestmark = [pytest.mark.real_models, pytest.mark.oracle, pytest.mark.timeout(1800)]
FILES = [
    "smollm2-135m-instruct-q4_1.gguf",
    "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    "gemma-3-270m-q4_k_m.gguf",
]
PROMPTS = [
    "The capital of France is",
    "Once upon a time, a small robot",
    "def fibonacci(n):\n",
    "Q: What is 12 * 12?\nA:",
    "Dear Sir or Madam,\n\nI am writing to",
    "北京是中国的首都，",
    "用一句话介绍北京。",
    "从前有座山，山里有座庙，",
    "床前明月光，",
    "人工智能是计算机科学的一个分支，它",
]
NUM_GREEDY = 64
TIE = 1e-4  # of the largest logit


@pytest.fixture(scope="module", params=FILES)
def path(request: pytest.FixtureRequest) -> Path:
    path = Path(os.environ.get("TOKENGLASS_TEST_MODELS", "nowhere"), str(request.param))
    if not path.is_file():
        pytest.skip(f"TOKENGLASS_TEST_MODELS has no {request.param}")
    return path


@pytest.fixture(scope="module")
def reference(path: Path) -> Reference:
    return Reference(path)


@pytest.fixture(scope="module")
def engine(path: Path) -> Engine:
    return load(path, activations="f32", kv="f32", context_length=512)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_greedy_tokens_are_equal(engine: Engine, reference: Reference, prompt: str) -> None:
    ids = engine.tokenizer.encode(prompt)
    pieces = engine.stream(Request(prompt_ids=ids, max_tokens=NUM_GREEDY, ignore_eos=True))
    ours = [token for piece in pieces for token in piece.token_ids]
    assert len(ours) == NUM_GREEDY
    scores = reference.logits(ids + ours)[len(ids) - 1 : -1]
    behind = scores.max(axis=1) - scores[np.arange(NUM_GREEDY), ours]  # 0: the same best token
    assert (behind <= TIE * np.abs(scores).max(axis=1)).all()


def test_exact_logits_agree(engine: Engine, reference: Reference) -> None:
    ids = engine.tokenizer.encode(LONG_TEXT)[:300]
    expected = reference.logits(ids)
    found = np.concatenate([scores.numpy().copy() for _, scores in all_rows(engine, ids)])
    error = np.abs(found - expected).max(axis=1)
    assert (error <= TIE * np.abs(expected).max(axis=1)).all()
