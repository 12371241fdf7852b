"""The measurements themselves: that they count what they say they count. Speeds are not judged here."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tokenglass.bench.measure import cold_start, hash_of, measure, measure_round, our_cold_start
from tokenglass.bench.ours import Ours, Times
from tokenglass.bench.plan import Plan, text_ids
from tokenglass.errors import TokenglassError

PLAN = Plan(rounds=2, prefills=(32, 48), depths=(0, 40), rows=(1, 4), decode=9, cold_starts=0)


class Fake:
    """Chooses its first tokens after 0.5 s and each further one after 0.25 s, by its own account."""

    name = "fake"

    def __init__(self) -> None:
        self.calls: list[tuple[list[list[int]], int, bool]] = []

    def generate(self, prompts: Sequence[Sequence[int]], num_tokens: int, *, keep: bool = False) -> Times:
        self.calls.append(([list(ids) for ids in prompts], num_tokens, keep))
        return Times(0.5, (num_tokens - 1) * 0.25, tuple(range(num_tokens)))


def test_rates_follow_their_definitions() -> None:
    assert measure_round(Fake(), list(range(100)), PLAN, 0) == {
        "prefill_32_tokens_per_s": 64.0,
        "prefill_48_tokens_per_s": 96.0,
        "decode_0_tokens_per_s": 4.0,
        "decode_40_tokens_per_s": 4.0,
        "rows_1_tokens_per_s": 4.0,
        "rows_1_step_s": 0.25,
        "rows_4_tokens_per_s": 16.0,
        "rows_4_step_s": 0.25,
    }


def test_each_round_measures_each_engine_once_on_a_text_it_has_not_seen(ours: Ours) -> None:
    fake, rounds = Fake(), list[int]()
    results = measure(ours, [fake], PLAN, on_round=rounds.append)
    assert rounds == [0, 1]
    prefills = [prompts[0] for prompts, num_tokens, _ in fake.calls if len(prompts[0]) == 48]
    assert prefills[0] != prefills[1]
    assert prefills[0][1:] == prefills[1][:-1]  # the same text from the next token on
    for metric in measure_round(Fake(), list(range(100)), PLAN, 0):
        assert {name: len(values) for name, values in results[metric].items()} == {"tokenglass": 2, "fake": 2}


def test_only_what_is_decoded_after_may_be_kept(ours: Ours) -> None:
    fake = Fake()
    measure(ours, [fake], PLAN)
    assert {len(prompts[0]) for prompts, _, keep in fake.calls if keep} == {1, 40}


def test_several_requests_step_together(ours: Ours) -> None:
    steps = []
    step = ours.engine.step
    ours.engine.step = lambda: steps.append(step()) or steps[-1]  # type: ignore[func-returns-value, method-assign]
    try:
        ours.generate(PLAN.prompts(text_ids(ours.engine.tokenizer, 30), 4), 5)
    finally:
        ours.engine.step = step  # type: ignore[method-assign]
    assert [len(grown) for grown in steps] == [4] * 5


def test_own_engine_is_held_against_the_limits(ours: Ours) -> None:
    results = measure(ours, [], PLAN)
    newest = {metric: values["tokenglass"][-1] for metric, values in results.items()}
    assert min(newest[name] for name in ("read_1_bytes_per_s", "read_bytes_per_s", "int8_per_s")) > 0
    num_bytes = ours.weight_bytes() + ours.engine.model.kv_bytes_per_token * (40 + 4)
    assert newest["decode_40_bytes_per_s"] == num_bytes * newest["decode_40_tokens_per_s"]
    assert newest["decode_40_share"] == newest["decode_40_bytes_per_s"] / newest["read_bytes_per_s"]
    work = ours.multiply_adds(48) / 48
    assert newest["prefill_48_share"] == pytest.approx(
        work * newest["prefill_48_tokens_per_s"] / newest["int8_per_s"]
    )
    assert newest["prefill_48_products_share"] > 0
    assert 0 < newest["decode_0_python_share"] < 1
    assert not ours.engine.model.cpu.is_timed  # and the clock is off again


def test_products_take_a_part_of_the_time_in_operations(ours: Ours) -> None:
    for phase in ours.inside([text_ids(ours.engine.tokenizer, 20)], 6):
        assert 0 < phase.product_s < phase.op_s < phase.seconds


def test_multiply_adds_are_those_of_the_products(ours: Ours) -> None:
    products = ours.engine.model.products
    assert ours.multiply_adds(1) == sum(product.num_weights for product in products)
    assert ours.multiply_adds(3) == 3 * ours.multiply_adds(1) - 2 * products[-1].num_weights


def test_generate_gives_exactly_so_many_tokens_whatever_was_kept(ours: Ours) -> None:
    ids = text_ids(ours.engine.tokenizer, 20)
    first = ours.generate([ids], 12)
    assert len(first.token_ids) == 12
    assert min(first.first_token_s, first.rest_s) > 0
    passes = []
    for _ in range(2):
        assert ours.generate([ids], 12, keep=True).token_ids == first.token_ids
        passes.append(ours._kept[20].timings.cached_tokens)
    assert passes == [0, 19]  # the second began where the prompt ends
    assert ours.generate([ids], 12).token_ids == first.token_ids


def test_hash_is_that_of_the_output(ours: Ours) -> None:
    assert hash_of(ours) == hash_of(ours)
    assert len(hash_of(ours)) == 12


def test_cold_start_runs_the_real_command(roomy_model_path: Path) -> None:
    measured = cold_start(our_cold_start(roomy_model_path, 1))
    assert measured["cold_start_s"] > 0
    assert measured.get("memory_bytes", 1e8) > 1e6


def test_failed_cold_start_says_why() -> None:
    with pytest.raises(TokenglassError, match="the cold start failed: no luck"):
        cold_start([sys.executable, "-c", "import sys; sys.exit('no luck')"])
