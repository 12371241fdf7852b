"""What is measured fits the model, and what was not asked for is left out."""

from __future__ import annotations

from tokenglass.bench.plan import FULL, PARTS, QUICK, ROW_PROMPT, Plan


def test_a_plan_knows_the_room_it_needs() -> None:
    assert QUICK.positions == 577
    assert Plan(prefills=(16,), depths=(0,), decode=128).positions == 130
    assert Plan(rounds=3, prefills=(32, 64), depths=(), rows=()).num_ids == 67


def test_a_large_window_changes_nothing() -> None:
    assert FULL.within(8192) == FULL


def test_a_small_window_gets_what_fits() -> None:
    small = FULL.within(300)
    assert small.prefills == (128, 299)
    assert small.depths == (0,)
    assert small.rows == (1,)
    assert small.positions <= 300
    assert QUICK.within(5).decode == 2


def test_parts_can_be_chosen() -> None:
    assert QUICK.only(PARTS) == QUICK
    decode = QUICK.only(["decode"])
    assert (decode.prefills, decode.depths, decode.rows, decode.cold_starts) == ((), QUICK.depths, (), 0)
    assert QUICK.only(["cold"]).num_ids == 1 + QUICK.rounds


def test_prompts_of_one_step_differ_and_are_short() -> None:
    prompts = QUICK.prompts(list(range(100)), 3)
    assert [ids[0] for ids in prompts] == [0, 1, 2]
    assert {len(ids) for ids in prompts} == {ROW_PROMPT}
