"""Stepping by hand: the same tokens as the loop, going back changes nothing, a branch is by ids alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.engine.doubles import scripted_engine
from tokenglass.engine import Engine, Request, load
from tokenglass.engine.stepping import Stepper
from tokenglass.errors import ContextFullError, ParameterError, TokenglassError
from tokenglass.sampling import Sampling

PROMPT = [5, 80, 70, 270, 20, 33]
DRAWN = Sampling(temperature=1.5, top_p=0.95, repetition_penalty=1.1, presence_penalty=0.5, seed=7)


@pytest.fixture(scope="module")
def engine(tiny_model_path: Path) -> Engine:
    return load(tiny_model_path, num_threads=1)


def streamed(engine: Engine, prompt: list[int], sampling: Sampling, num: int) -> list[int]:
    request = Request(prompt_ids=prompt, sampling=sampling, max_tokens=num, ignore_eos=True)
    return [token for piece in engine.stream(request) for token in piece.token_ids]


def taken(stepper: Stepper, num: int) -> list[int]:
    for _ in range(num):
        stepper.take(stepper.draw().token_id)
    return stepper.taken_ids


@pytest.mark.parametrize("sampling", [Sampling(), DRAWN])
def test_taking_every_draw_is_the_stream(engine: Engine, sampling: Sampling) -> None:
    with Stepper(engine, PROMPT, sampling=sampling) as stepper:
        assert taken(stepper, 40) == streamed(engine, PROMPT, sampling, 40)


def test_prompt_longer_than_a_step_runs_in_pieces(tiny_model_path: Path) -> None:
    engine = load(tiny_model_path, num_threads=1, max_rows=8)
    prompt = PROMPT * 5
    with Stepper(engine, prompt, sampling=DRAWN) as stepper:
        first = taken(stepper, 1)
        assert stepper.num_passes == 4
        assert first + taken(stepper, 5)[1:] == streamed(engine, prompt, DRAWN, 6)


def test_going_back_gives_the_same_bits(engine: Engine) -> None:
    with Stepper(engine, PROMPT) as stepper:
        visited = []
        for token in range(100, 140):  # crosses pages of the cache
            visited.append(stepper.scores().numpy().copy())
            stepper.take(token)
        for length in range(len(PROMPT) + 39, len(PROMPT) - 1, -7):
            stepper.truncate(length)
            assert np.array_equal(stepper.scores().numpy(), visited[length - len(PROMPT)])


def test_a_branch_equals_a_fresh_prompt_of_the_same_ids(engine: Engine) -> None:
    with Stepper(engine, PROMPT) as stepper:
        taken(stepper, 20)
        stepper.branch(len(PROMPT) + 3, 77)
        ids = list(stepper.ids)
        with Stepper(engine, ids) as fresh:
            assert np.array_equal(stepper.scores().numpy(), fresh.scores().numpy())


def test_the_same_branch_twice_is_one_branch(engine: Engine) -> None:
    """GLASS.md D4."""
    with Stepper(engine, PROMPT) as stepper:
        parent = list(PROMPT) + taken(stepper, 5)
        at = len(PROMPT) + 2
        for _ in range(3):
            stepper.branch(at, 77)
            assert stepper.ids == [*parent[:at], 77]


def test_going_back_costs_one_row_and_asking_again_nothing(engine: Engine) -> None:
    with Stepper(engine, PROMPT) as stepper:
        taken(stepper, 10)
        stepper.scores()
        before = stepper.num_passes
        stepper.truncate(len(PROMPT) + 4)
        stepper.truncate(len(PROMPT) + 4)
        assert stepper.num_cached == len(PROMPT) + 3
        stepper.scores()
        stepper.draw(trace_top=3)
        assert stepper.num_passes == before + 1


def test_scores_outlive_another_request_on_the_engine(engine: Engine) -> None:
    with Stepper(engine, PROMPT) as stepper:
        before = stepper.scores().numpy().copy()
        streamed(engine, [9, 9, 9], DRAWN, 4)
        assert np.array_equal(stepper.scores().numpy(), before)
        assert taken(stepper, 6) == streamed(engine, PROMPT, Sampling(), 6)


def test_ids_that_a_tokenizer_would_never_write_are_kept(engine: Engine) -> None:
    """GLASS.md D6."""
    tokenizer = engine.tokenizer
    letters = [tokenizer.encode(letter, bos=False)[0] for letter in "he"]
    assert tokenizer.encode("he", bos=False) != letters
    with Stepper(engine, PROMPT) as stepper:
        for token in letters:
            stepper.take(token)
        stepper.scores()
        assert stepper.ids == PROMPT + letters


def test_reasons_are_those_of_the_stream(engine: Engine) -> None:
    request = Request(prompt_ids=PROMPT, sampling=DRAWN, max_tokens=1, trace_top=5)
    with Stepper(engine, PROMPT, sampling=DRAWN) as stepper:
        assert stepper.draw(trace_top=5).decision == next(engine.stream(request)).decision
        assert stepper.draw().decision is None


def test_end_token_is_said_and_not_enforced(tiny_model_path: Path) -> None:
    with Stepper(scripted_engine(tiny_model_path, [9, 2, 11]), [5]) as stepper:
        taken(stepper, 1)
        assert not stepper.is_ended
        taken(stepper, 1)
        assert stepper.is_ended
        taken(stepper, 1)
        assert (stepper.is_ended, stepper.taken_ids) == (False, [9, 2, 11])


def test_an_end_token_that_closes_the_prompt_ends_nothing(tiny_model_path: Path) -> None:
    with Stepper(scripted_engine(tiny_model_path, [9]), [5, 2]) as stepper:
        assert not stepper.is_ended


def test_a_full_window_takes_no_more(tiny_model_path: Path) -> None:
    engine = scripted_engine(tiny_model_path, [9], num_pages=1)
    with Stepper(engine, [5] * 14) as stepper:
        taken(stepper, 2)
        assert stepper.is_full
        with pytest.raises(ParameterError, match="the context window of 16 is full"):
            stepper.take(9)
        stepper.truncate(15)
        stepper.take(10)
        assert stepper.taken_ids == [9, 10]


def test_pages_go_back_whatever_happens(engine: Engine) -> None:
    free = engine.scheduler.pool.num_free
    stepper = Stepper(engine, PROMPT * 4)
    stepper.scores()
    assert engine.scheduler.pool.num_free < free
    with pytest.raises(ParameterError), stepper:
        stepper.take(-1)
    stepper.close()
    assert engine.scheduler.pool.num_free == free


def test_pages_held_by_others_are_an_error_and_not_a_crash(tiny_model_path: Path) -> None:
    engine = scripted_engine(tiny_model_path, [9], num_pages=2)
    with Stepper(engine, [5] * 20) as first, Stepper(engine, [5]) as second:
        first.scores()
        with pytest.raises(TokenglassError, match="other requests hold the cache's pages"):
            second.scores()


def test_a_request_that_waits_for_a_steppers_pages_is_told_so(tiny_model_path: Path) -> None:
    engine = scripted_engine(tiny_model_path, [9], num_pages=2)
    with Stepper(engine, [5]) as stepper:
        stepper.scores()
        with pytest.raises(TokenglassError, match="other requests hold the cache's pages"):
            list(engine.stream(Request(prompt_ids=[5])))
    assert len(list(engine.stream(Request(prompt_ids=[5])))) == 31


def test_what_a_conversation_kept_gives_way_to_a_stepper(tiny_model_path: Path) -> None:
    engine = scripted_engine(tiny_model_path, [9], num_pages=2)
    kept = engine.submit(Request(prompt_ids=[5]), keep=True)
    list(engine.follow(kept))
    assert engine.scheduler.pool.num_free == 0
    with Stepper(engine, [5]) as stepper:
        stepper.scores()
    assert engine.scheduler.pool.num_free == 2


@pytest.mark.parametrize("prompt", [[], [-1], [300_000], ["a"]])
def test_bad_prompts_are_refused(engine: Engine, prompt: list[int]) -> None:
    with pytest.raises(ParameterError):
        Stepper(engine, prompt)


def test_prompt_without_room_for_a_token_is_refused(engine: Engine) -> None:
    with pytest.raises(ContextFullError):
        Stepper(engine, [5] * 512)


def test_bad_steps_change_nothing(engine: Engine) -> None:
    with Stepper(engine, PROMPT) as stepper:
        taken(stepper, 3)
        before = list(stepper.ids)
        wrong: list[Callable[[], None]] = [
            lambda: stepper.take(-1),
            lambda: stepper.take(300_000),
            lambda: stepper.truncate(len(PROMPT) - 1),
            lambda: stepper.truncate(len(before) + 1),
            lambda: stepper.branch(len(PROMPT), 300_000),
        ]
        for step in wrong:
            with pytest.raises(ParameterError):
                step()
            assert stepper.ids == before
