"""What a conversation reuses, that it changes no answer, and that no page is ever lost or held twice."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.engine.doubles import ScriptedModel, scripted_engine
from tokenglass.engine import Engine, Request, load
from tokenglass.engine.conversation import Conversation
from tokenglass.errors import ContextFullError
from tokenglass.sampling import Sampling

Messages = list[dict[str, str]]


@pytest.fixture(scope="module")
def engine(tiny_model_path: Path) -> Engine:
    return load(tiny_model_path, num_threads=1, max_rows=64)


@pytest.fixture(scope="module")
def other(tiny_model_path: Path) -> Engine:
    """A second engine with the same weights: a fresh request there takes no room here."""
    return load(tiny_model_path, num_threads=1)


def check_pages(engine: Engine) -> None:
    scheduler = engine.scheduler
    scheduler.pool.check([page for s in [*scheduler.running, *scheduler.kept] for page in s.pages])


def fresh(engine: Engine, messages: Messages, **options: object) -> list[int]:
    request = Request(prompt_ids=engine.tokenizer.encode_chat(messages), **options)  # type: ignore[arg-type]
    return [token for piece in engine.stream(request) for token in piece.token_ids]


def say(conversation: Conversation, messages: Messages, **options: object) -> tuple[list[int], int]:
    """(ids of the answer, cached tokens of the prompt); the answer joins `messages`."""
    pieces = list(conversation.answer(messages, **options))  # type: ignore[arg-type]
    messages.append({"role": "assistant", "content": "".join(piece.text for piece in pieces)})
    check_pages(conversation.engine)
    return [token for piece in pieces for token in piece.token_ids], pieces[0].timings.cached_tokens


def test_second_turn_computes_only_what_is_new(engine: Engine) -> None:
    conversation, messages = Conversation(engine), [{"role": "user", "content": "the cat is on the mat"}]
    _, cached = say(conversation, messages, max_tokens=8)
    assert cached == 0
    first = len(engine.tokenizer.encode_chat(messages[:1]))
    messages.append({"role": "user", "content": "and then"})
    _, cached = say(conversation, messages, max_tokens=8)
    assert cached >= first
    conversation.close()
    engine.scheduler.pool.check([])


@pytest.mark.parametrize("seed", range(6))
def test_answers_are_those_of_fresh_requests_whatever_is_edited(
    engine: Engine, other: Engine, seed: int
) -> None:
    rng = random.Random(seed)
    conversation, messages = Conversation(engine), [{"role": "system", "content": "s" * rng.randrange(40)}]
    words = ("the cat", "你好", "<|im_end|>", "12 12 12", "x" * 30)
    for turn in range(6):
        edit = rng.choice(["none", "none", "retry", "system", "cut"]) if turn else "none"
        if edit == "retry":
            messages = messages[:-2]
        elif edit == "system":
            messages[0] = {"role": "system", "content": "t" * rng.randrange(40)}
        elif edit == "cut":
            messages = messages[: 1 + 2 * rng.randrange(1 + len(messages) // 4)]
        messages.append({"role": "user", "content": rng.choice(words)})
        options = {"sampling": Sampling(temperature=rng.choice([0.0, 1.5]), seed=turn), "max_tokens": 12}
        expected = fresh(other, messages, **options)
        assert say(conversation, messages, **options)[0] == expected
    conversation.close()
    engine.scheduler.pool.check([])


def test_asking_the_same_again_computes_one_token_of_the_prompt(engine: Engine) -> None:
    conversation, messages = Conversation(engine), [{"role": "user", "content": "the cat"}]
    say(conversation, messages, max_tokens=4)
    ids = len(engine.tokenizer.encode_chat(messages[:1]))
    assert say(conversation, messages[:1], max_tokens=4)[1] == ids - 1
    conversation.close()


def test_an_answer_stopped_in_the_middle_keeps_its_cache(engine: Engine, other: Engine) -> None:
    conversation, messages = Conversation(engine), [{"role": "user", "content": "the cat"}]
    stream = conversation.answer(messages, max_tokens=50)
    text = next(stream).text + next(stream).text
    stream.close()
    check_pages(engine)
    messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "go on"}]
    expected = fresh(other, messages, max_tokens=6)
    ids, cached = say(conversation, messages, max_tokens=6)
    assert ids == expected
    assert cached > 0
    conversation.close()
    engine.scheduler.pool.check([])


def test_a_request_that_needs_the_room_gets_it(engine: Engine, other: Engine) -> None:
    conversation, messages = Conversation(engine), [{"role": "user", "content": "the cat"}]
    say(conversation, messages, max_tokens=4)
    whole_window = Request(prompt_ids=[7] * 100, ignore_eos=True)
    assert len(list(engine.stream(whole_window))) == engine.context_length - 100
    engine.scheduler.pool.check([])
    messages.append({"role": "user", "content": "and"})
    expected = fresh(other, messages, max_tokens=4)
    assert say(conversation, messages, max_tokens=4) == (expected, 0)
    conversation.close()


def test_two_conversations_take_turns_without_waiting_for_each_other(engine: Engine) -> None:
    chats = [Conversation(engine) for _ in range(3)]
    for turn in range(3):
        for i, chat in enumerate(chats):
            messages = [{"role": "user", "content": f"{i} " * 60}]
            list(chat.answer(messages[: turn + 1], max_tokens=None if turn == 2 else 100))
            check_pages(engine)
    for chat in chats:
        chat.close()
    engine.scheduler.pool.check([])


def test_a_queued_turn_that_nobody_reads_holds_nothing(engine: Engine) -> None:
    conversation, messages = Conversation(engine), [{"role": "user", "content": "the cat"}]
    say(conversation, messages, max_tokens=4)
    sequence = engine.submit(Request(prompt_ids=[5, 6]), reuse=conversation._last, keep=True)
    engine.scheduler.drop(sequence)
    check_pages(engine)
    conversation.close()
    engine.scheduler.pool.check([])


def test_full_window_is_refused_with_both_numbers_and_the_cache_stays(engine: Engine) -> None:
    conversation, messages = Conversation(engine), [{"role": "user", "content": "the cat"}]
    say(conversation, messages, max_tokens=4)
    long = [*messages, {"role": "user", "content": "x" * 600}]
    with pytest.raises(ContextFullError) as caught:
        list(conversation.answer(long))
    assert caught.value.context_length == 512
    assert caught.value.prompt_tokens > 600
    assert say(conversation, messages[:1], max_tokens=4)[1] > 0
    conversation.close()


def test_reused_rows_are_not_computed(tiny_model_path: Path) -> None:
    engine = scripted_engine(tiny_model_path, [5], num_pages=16)
    assert isinstance(engine.model, ScriptedModel)
    conversation, messages = Conversation(engine), [{"role": "user", "content": "the cat"}]
    list(conversation.answer(messages, max_tokens=1))
    engine.model.batches.clear()
    list(conversation.answer(messages, max_tokens=1))
    assert sum(batch.num_rows for batch in engine.model.batches) == 1
