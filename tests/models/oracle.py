"""Comparing with Transformers: the ids of a long text, its logits, and how near ours must come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.models.support import all_logits, bind
from tests.support.hf_models import VOCAB

NUM_POSITIONS, NUM_GREEDY = 300, 100
IDS = np.random.default_rng(0).integers(0, VOCAB, NUM_POSITIONS).tolist()


def truth(model: Any) -> NDArray[np.float32]:
    """Transformers' logits after each of IDS, in one pass."""
    import torch

    with torch.no_grad():
        logits: NDArray[np.float32] = model(torch.tensor([IDS])).logits[0].numpy()
    return logits


def ours(path: Path, *, chunk: int = 97, num_pages: int = 64) -> NDArray[np.float32]:
    """Ours in exact mode, in chunks: what lies behind a chunk is read from the cache."""
    model = bind(path, exact=True, kv="f32", num_pages=num_pages)
    return all_logits(model, IDS, chunk=chunk)


def assert_close(a: NDArray[np.float32], b: NDArray[np.float32]) -> None:
    """Within 1e-4 of the largest logit."""
    assert np.abs(b).max() > 1
    assert np.abs(a - b).max() <= 1e-4 * np.abs(b).max()


def assert_greedy_equal(path: Path, model: Any) -> None:
    """100 tokens after a few of IDS; a pair may differ where both are best, and then the comparison ends."""
    import torch

    mine, ids = bind(path, exact=True, kv="f32", max_rows=16), IDS[:9]
    scores, cache, new = all_logits(mine, ids)[-1], None, ids
    for _ in range(NUM_GREEDY):
        with torch.no_grad():
            result = model(torch.tensor([new]), past_key_values=cache, use_cache=True)
        cache, theirs = result.past_key_values, result.logits[0, -1].numpy()
        best = int(theirs.argmax())
        if int(scores.argmax()) != best:
            assert theirs[best] - theirs[scores.argmax()] <= 1e-4 * np.abs(theirs).max()
            return
        ids, new = [*ids, best], [best]
        scores = next_scores(mine, ids)


def next_scores(model: Any, ids: list[int]) -> NDArray[np.float32]:
    """Logits after the last of `ids`; those before it are in the cache."""
    from tokenglass.cache.pages import pages_for
    from tokenglass.models.batch import Batch, Slice

    piece = Slice(ids[-1:], len(ids) - 1, list(range(pages_for(len(ids)))))
    scores: NDArray[np.float32] = model.forward(Batch((piece,))).numpy()[0].copy()
    return scores
