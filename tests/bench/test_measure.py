"""The measurements themselves: that they count what they say they count. Speeds are not judged here."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tokenglass.bench.measure import (
    Ours,
    Plan,
    Times,
    cold_start,
    hash_of,
    measure,
    measure_round,
    our_cold_start,
    text_ids,
)
from tokenglass.errors import TokenglassError

PLAN = Plan(rounds=2, prefills=(48, 32), decode_prompt=8, decode=12)


class Fake:
    """Chooses its first token after 0.5 s and each further one after 0.25 s, by its own account."""

    name = "fake"

    def __init__(self) -> None:
        self.calls: list[tuple[list[int], int]] = []

    def generate(self, ids: Sequence[int], num_tokens: int) -> Times:
        self.calls.append((list(ids), num_tokens))
        return Times(0.5, (num_tokens - 1) * 0.25, tuple(range(num_tokens)))


def test_rates_follow_their_definitions() -> None:
    assert measure_round(Fake(), list(range(100)), PLAN) == {
        "prefill_48_tokens_per_s": 96.0,
        "prefill_32_tokens_per_s": 64.0,
        "decode_tokens_per_s": 4.0,
    }


def test_each_round_measures_each_engine_once_on_a_text_it_has_not_seen(ours: Ours) -> None:
    fake, rounds = Fake(), list[int]()
    results = measure(ours, [fake], PLAN, on_round=rounds.append)
    assert rounds == [0, 1]
    prefills = [ids for ids, num_tokens in fake.calls[1:] if len(ids) == 48]
    assert prefills[0] != prefills[1]
    assert prefills[0][1:] == prefills[1][:-1]  # the same text from the next token on
    for metric in ("prefill_48_tokens_per_s", "prefill_32_tokens_per_s", "decode_tokens_per_s"):
        assert {name: len(values) for name, values in results[metric].items()} == {"tokenglass": 2, "fake": 2}


def test_own_engine_is_held_against_memory_and_python(ours: Ours) -> None:
    results = measure(ours, [], PLAN)
    rate = results["decode_tokens_per_s"]["tokenglass"][0]
    assert results["decode_bytes_per_s"]["tokenglass"][0] == rate * ours.weight_bytes()
    assert results["limit_bytes_per_s"]["tokenglass"][0] > 0
    assert 0 < results["python_share"]["tokenglass"][0] < 1
    assert not ours.engine.model.cpu.is_timed  # and the clock is off again


def test_generate_gives_exactly_so_many_tokens_and_forgets_them(ours: Ours) -> None:
    ids = text_ids(ours.engine, 20)
    first = ours.generate(ids, 12)
    assert len(first.token_ids) == 12
    assert ours.generate(ids, 12).token_ids == first.token_ids
    assert min(first.first_token_s, first.rest_s) > 0


def test_hash_is_that_of_the_output(ours: Ours) -> None:
    assert hash_of(ours, PLAN) == hash_of(ours, PLAN)
    assert hash_of(ours, PLAN) != hash_of(ours, Plan(prefills=(8,), decode_prompt=9, decode=12))


def test_plan_knows_the_room_it_needs() -> None:
    assert Plan().positions == 513
    assert Plan(prefills=(16,), decode_prompt=16, decode=128).positions == 145
    assert Plan(rounds=3, prefills=(32, 64)).num_ids == 67
    assert Plan().within(8192) == Plan()
    small = Plan().within(100)
    assert small.prefills == (99,)
    assert small.positions <= 100


def test_cold_start_runs_the_real_command(roomy_model_path: Path) -> None:
    measured = cold_start(our_cold_start(roomy_model_path, 1))
    assert 0 < measured["cold_start_s"] < 60
    assert measured.get("memory_bytes", 1e8) > 1e6


def test_failed_cold_start_says_why() -> None:
    with pytest.raises(TokenglassError, match="the cold start failed: no luck"):
        cold_start([sys.executable, "-c", "import sys; sys.exit('no luck')"])
