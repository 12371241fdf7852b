"""Real files of other architectures, in exact mode, against Transformers in float32 from the same file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tests.models.make_golden import Reference
from tests.models.prompts import LONG_TEXT
from tests.models.support import all_logits, bind
from tokenglass.engine import Request, load

pytestmark = [pytest.mark.real_models, pytest.mark.oracle, pytest.mark.timeout(1800)]
FILES = ["qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "gemma-3-270m-q4_k_m.gguf"]
PROMPTS = ("The capital of France is", "def fibonacci(n):\n", "北京是中国的首都，", "用一句话介绍北京。")
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


def test_exact_logits_agree(path: Path, reference: Reference) -> None:
    ids = load(path, context_length=64).tokenizer.encode(LONG_TEXT)[:300]
    expected = reference.logits(ids)
    error = np.abs(all_logits(bind(path, exact=True, kv="f32"), ids, chunk=97) - expected).max(axis=1)
    assert (error <= TIE * np.abs(expected).max(axis=1)).all()


def test_greedy_tokens_are_equal(path: Path, reference: Reference) -> None:
    engine = load(path, activations="f32", kv="f32", context_length=512)
    for prompt in PROMPTS:
        ids = engine.tokenizer.encode(prompt)
        pieces = engine.stream(Request(prompt_ids=ids, max_tokens=NUM_GREEDY, ignore_eos=True))
        ours = [token for piece in pieces for token in piece.token_ids]
        theirs = reference.greedy(ids, NUM_GREEDY)
        if ours != theirs:  # a pair may differ where both are best
            same = next(i for i, pair in enumerate(zip(ours, theirs, strict=True)) if len({*pair}) > 1)
            scores = reference.logits(ids + theirs[:same])[-1]
            assert abs(scores[ours[same]] - scores[theirs[same]]) <= TIE * np.abs(scores).max()
