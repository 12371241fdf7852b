"""Scores and perplexity against numpy: log-softmax of the logits, and windows counted by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.tiny_llama import write_tiny_llama
from tokenglass.engine import Engine, load, scoring
from tokenglass.engine.all_rows import all_rows
from tokenglass.engine.scoring import continued, perplexity, token_scores
from tokenglass.errors import ContextFullError, ModelOutputError, ParameterError

IDS = [(7 * i + 3) % 300 for i in range(70)]
TEXT = "the water flows under the old bridge, and 你好 stays. " * 9


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    path = write_tiny_llama(tmp_path_factory.mktemp("scoring") / "tiny.gguf")
    return load(path, num_threads=1)


def log_probabilities(engine: Engine, ids: list[int]) -> NDArray[np.float64]:
    """ln softmax after each id, by the definition."""
    z = np.concatenate([scores.numpy().astype(np.float64) for _, scores in all_rows(engine, ids)])
    e = np.exp(z - z.max(1, keepdims=True))
    logarithms: NDArray[np.float64] = np.log(e / e.sum(1, keepdims=True))
    return logarithms


def test_scores_are_the_log_softmax_and_ranks_the_order(engine: Engine) -> None:
    scores, log_p = token_scores(engine, IDS, top=3), log_probabilities(engine, IDS)
    assert math.isnan(scores.logprobs[0])
    for at in range(1, len(IDS)):
        assert scores.logprobs[at] == pytest.approx(log_p[at - 1, IDS[at]], abs=1e-9)
        order = np.argsort(-log_p[at - 1], kind="stable")
        assert order[scores.ranks[at] - 1] == IDS[at]
        assert [best for best, _ in scores.top[at]] == order[:3].tolist()
    engine.scheduler.pool.check([])


@pytest.mark.parametrize(
    ("window", "stride"), [(None, None), (64, None), (64, 20), (17, 1), (2, 1), (512, 3)]
)
def test_perplexity_predicts_each_token_once_from_its_window(
    engine: Engine, window: int | None, stride: int | None
) -> None:
    text = TEXT[:150]
    ids = engine.tokenizer.encode(text, bos=False)
    assert not engine.tokenizer.vocabulary.add_bos
    size = window or engine.context_length
    step, total, seen, tokens = stride or size, 0.0, 0, []
    for begin in range(0, len(ids), step):
        part = ids[begin : begin + size]
        log_p = log_probabilities(engine, part)
        for at in range(max(seen - begin, 1), len(part)):
            total += log_p[at - 1, part[at]]
            tokens.append(begin + at)
        seen = begin + len(part)
        if seen == len(ids):
            break
    *_, found = perplexity(engine, text, window=window, stride=stride)
    assert found.tokens == len(tokens) == len(set(tokens))
    assert found.total_logprob == pytest.approx(total)
    assert found.perplexity == pytest.approx(math.exp(-total / len(tokens)))
    num_bytes = sum(len(engine.tokenizer.vocabulary.token_bytes(ids[at])) for at in tokens)
    assert found.bits_per_byte == pytest.approx(-total / math.log(2) / num_bytes)
    assert found.windows_done == found.num_windows
    engine.scheduler.pool.check([])


def test_with_a_bos_every_token_of_the_text_is_predicted(tmp_path: Path) -> None:
    path = write_tiny_llama(tmp_path / "bos.gguf", metadata={"tokenizer.ggml.add_bos_token": True})
    engine = load(path, num_threads=1)
    assert engine.tokenizer.vocabulary.add_bos
    for stride in (None, 10):
        *_, found = perplexity(engine, TEXT, window=33, stride=stride)
        assert found.tokens == len(engine.tokenizer.encode(TEXT, bos=False))
        assert found.num_bytes == len(TEXT.encode())


def test_a_text_longer_than_the_window_is_refused_but_for_perplexity(engine: Engine) -> None:
    with pytest.raises(ContextFullError):
        token_scores(engine, [5] * 513)
    *_, found = perplexity(engine, TEXT * 9)
    assert found.num_windows > 1


@pytest.mark.parametrize(
    "settings", [{"window": 1}, {"window": 513}, {"stride": 0}, {"window": 8, "stride": 9}, {"window": True}]
)
def test_windows_out_of_range_are_refused(engine: Engine, settings: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        next(perplexity(engine, TEXT, **settings))


def test_too_little_to_score_is_refused(engine: Engine) -> None:
    for ids in ([], [5]):
        with pytest.raises(ParameterError, match="at least two"):
            token_scores(engine, ids)
    with pytest.raises(ParameterError, match="at least two"):
        next(perplexity(engine, ""))
    with pytest.raises(ParameterError, match="top"):
        token_scores(engine, IDS, top=-1)


class Logits:
    """One step of logits that no model of ours would give."""

    def __init__(self, rows: NDArray[np.float32]) -> None:
        self._rows = rows

    def numpy(self) -> NDArray[np.float32]:
        return self._rows


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_logits_without_a_logarithm_are_an_error_that_names_the_place(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, bad: float
) -> None:
    rows = np.zeros((3, 300), np.float32)
    rows[1, 7] = bad

    def broken(*_: object) -> Iterator[tuple[int, Logits]]:
        yield 0, Logits(rows)

    monkeypatch.setattr(scoring, "all_rows", broken)
    with pytest.raises(ModelOutputError, match="position 2"):
        token_scores(engine, [1, 2, 3])
    rows[1] = 0
    rows[1, 3] = -np.inf
    assert token_scores(engine, [1, 2, 3]).logprobs[2] == -np.inf


def test_a_continuation_begins_where_the_ids_part(engine: Engine) -> None:
    encode = engine.tokenizer.encode
    ids, start = continued(engine, "the wa", "ter flows")
    assert ids == encode("the water flows")
    assert ids[:start] == encode("the wa")[:start]
    assert start == len(ids) or ids[start : start + 1] != encode("the wa")[start : start + 1]
