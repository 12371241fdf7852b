"""B31 and B29 on the tiny model: logits bit for bit, and penalties, do not depend on neighbours, on a warm
cache, on the slot of the batch or on the pages.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tokenglass.engine import Engine, Request, load, loop
from tokenglass.sampling import Choice, Draw, Sampling, choose
from tokenglass.sampling.candidates import Scores
from tokenglass.sampling.stages import edit

Seen = dict[tuple[int, ...], bytes]
PENALTIES: dict[str, Any] = {
    "repetition_penalty": 1.3,
    "presence_penalty": 0.5,
    "frequency_penalty": 0.4,
    "temperature": 1.0,
}
SETTINGS: list[dict[str, Any]] = [{}, PENALTIES]
NUM_NEW = 20


def text(seed: int, length: int) -> list[int]:
    return [int(i) for i in np.random.default_rng(seed).integers(3, 300, length)]


PROMPT = text(0, 45)  # ends inside a page of the cache
OTHERS = [text(seed, length) for seed, length in enumerate((1, 16, 17, 50, 3, 64, 31), start=1)]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Every row of logits that was chosen from, after bias and penalties: ids before it -> its bits."""
    rows: Seen = {}

    def choose_and_keep(logits: Scores, draws: tuple[Draw, ...]) -> list[Choice]:
        for z, draw in zip(logits.numpy(), draws, strict=False):
            rows[tuple(draw.ids)] = edit(z, draw.sampling, draw.ids, draw.num_prompt).tobytes()
        return choose(logits, draws)

    monkeypatch.setattr(loop, "choose", choose_and_keep)
    return rows


def request(ids: list[int], settings: dict[str, Any]) -> Request:
    sampling = Sampling(**{"seed": 1, **settings})
    return Request(prompt_ids=ids, sampling=sampling, max_tokens=NUM_NEW, ignore_eos=True)


def alone(engine: Engine, seen: Seen, settings: dict[str, Any]) -> None:
    list(engine.stream(request(PROMPT, settings)))


def among_others(engine: Engine, seen: Seen, settings: dict[str, Any], slot: int) -> None:
    """Eight requests at once; ours is in this slot of the batch and so on other pages."""
    prompts = [*OTHERS[:slot], PROMPT, *OTHERS[slot:]]
    sequences = [engine.submit(request(ids, settings)) for ids in prompts]
    engine.step()
    assert len(engine.scheduler.running) == 8
    for sequence in sequences:
        list(engine.follow(sequence))


def warm(engine: Engine, seen: Seen, settings: dict[str, Any]) -> None:
    """After an earlier request that left the cache of the whole prompt behind."""
    first = engine.submit(request([*PROMPT, 7], {}), keep=True)
    list(engine.follow(first))
    seen.clear()
    again = engine.submit(request(PROMPT, settings), reuse=first)
    list(engine.follow(again))
    assert again.timings.cached_tokens == len(PROMPT) - 1


WAYS: dict[str, Callable[[Engine, Seen, dict[str, Any]], None]] = {
    "first of eight": lambda engine, seen, settings: among_others(engine, seen, settings, 0),
    "fourth of eight": lambda engine, seen, settings: among_others(engine, seen, settings, 3),
    "last of eight": lambda engine, seen, settings: among_others(engine, seen, settings, 7),
    "warm cache": warm,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("settings", SETTINGS, ids=["greedy", "penalties"])
def test_rows_have_the_bits_they_have_alone(
    tiny_model_path: Path, seen: Seen, way: str, settings: dict[str, Any]
) -> None:
    alone(load(tiny_model_path, num_threads=1), seen, settings)
    expected = dict(seen)
    assert len(expected) == NUM_NEW
    seen.clear()
    WAYS[way](load(tiny_model_path, num_threads=2), seen, settings)
    assert {ids: bits for ids, bits in seen.items() if ids in expected} == expected


@pytest.mark.real_models
@pytest.mark.parametrize("way", ["fourth of eight", "warm cache"])
def test_rows_of_a_real_model_have_the_bits_they_have_alone(
    real_model_path: Path, seen: Seen, way: str
) -> None:
    engine = load(real_model_path, context_length=1024)
    alone(engine, seen, {})
    expected = dict(seen)
    seen.clear()
    WAYS[way](engine, seen, {})
    assert len(expected) == NUM_NEW
    assert {ids: bits for ids, bits in seen.items() if ids in expected} == expected


def test_repetition_reads_the_prompt_and_the_other_penalties_do_not(tiny_model_path: Path) -> None:
    """B29, "Paris Paris Paris": what stands in the prompt three times weighs once, and for one penalty."""
    engine = load(tiny_model_path, num_threads=1)

    def first(**settings: Any) -> dict[int, float]:
        asked = Request(
            prompt_ids=[80, 80, 80], sampling=Sampling(temperature=1.0, seed=1, **settings), trace_top=300
        )
        with_reasons = next(engine.stream(asked)).decision
        assert with_reasons is not None
        return {c.token_id: float(np.log(c.p) - c.logit) for c in with_reasons.top}

    plain = first()
    for answer_only in ({"presence_penalty": 2.0}, {"frequency_penalty": 2.0}):
        assert first(**answer_only) == plain
    moved = first(repetition_penalty=2.0)
    shift = {token: moved[token] - plain[token] for token in plain}
    [common] = {round(value, 3) for token, value in shift.items() if token != 80}
    assert abs(shift[80] - common) > 0.1
