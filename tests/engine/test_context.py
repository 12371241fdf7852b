"""B39: a prompt longer than the window. Refused with both numbers, or cut as asked for, and that is said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.engine.doubles import scripted_engine
from tokenglass.engine import Engine, Request, load
from tokenglass.engine.context import POLICIES, Message, Policy, without
from tokenglass.errors import ContextFullError, ParameterError

WINDOW = 512
IDS = list(range(100, 200))


@pytest.fixture(scope="module")
def engine(tiny_model_path: Path) -> Engine:
    return load(tiny_model_path, num_threads=1)


def chat(num_turns: int, words: int = 20) -> list[Message]:
    turns: list[Message] = [{"role": "system", "content": "the secret is 1234"}]
    for i in range(num_turns):
        turns.append({"role": "user", "content": f"question {i} " + "water " * words})
        turns.append({"role": "assistant", "content": f"answer {i} " + "flows " * words})
    return turns[:-1]


def fitted(engine: Engine, policy: Policy, messages: Sequence[Message]) -> tuple[str, int]:
    encode = engine.tokenizer.encode_chat
    found = policy.fit_chat(engine.tokenizer, messages, encode)
    assert len(found.ids) <= policy.room
    assert len(encode(messages)) - len(found.ids) == found.truncated_tokens
    return engine.tokenizer.decode(found.ids), found.truncated_tokens


@pytest.mark.parametrize("truncate", POLICIES)
@pytest.mark.parametrize("num_ids", [WINDOW - 1, WINDOW, WINDOW + 1])
def test_at_the_window_exactly_what_does_not_fit_goes(truncate: Any, num_ids: int) -> None:
    found = Policy(truncate, WINDOW).fit([7] * num_ids)
    assert found.truncated_tokens == max(0, num_ids - (WINDOW - 1))
    assert len(found.ids) == WINDOW - 1


def test_oldest_keeps_the_end_and_a_bos_and_middle_both_sides() -> None:
    assert Policy("oldest", 11).fit(IDS).ids == IDS[-10:]
    assert Policy("oldest", 11).fit(IDS, bos_id=100).ids == [100, *IDS[-9:]]
    assert Policy("middle", 12).fit(IDS).ids == [*IDS[:6], *IDS[-5:]]
    assert Policy("middle", 2).fit(IDS).ids == IDS[:1]
    assert Policy("oldest", 2).fit(IDS, bos_id=100).ids == IDS[-1:]


@pytest.mark.parametrize(
    ("reserve", "max_tokens", "room"),
    [(None, None, 99), (None, 30, 70), (None, 400, 50), (80, 30, 20), (None, 0, 99)],
)
def test_room_is_kept_for_the_answer(reserve: int | None, max_tokens: int | None, room: int) -> None:
    assert Policy("oldest", 100, reserve, max_tokens).room == room


@pytest.mark.parametrize("settings", [("newest", 100), ("oldest", 100, 0), ("oldest", 100, 100), (None, 100)])
def test_what_is_no_policy_is_refused(settings: tuple[Any, ...]) -> None:
    with pytest.raises(ParameterError):
        Policy(*settings)


def test_oldest_turns_go_whole_and_the_system_text_and_last_turn_stay(engine: Engine) -> None:
    text, num_out = fitted(engine, Policy("oldest", WINDOW), chat(12))
    assert num_out > 0
    assert "the secret is 1234" in text
    kept = [i for i in range(12) if f"question {i} " in text]
    assert kept == list(range(kept[0], 12)) != list(range(12))
    assert [i for i in range(11) if f"answer {i} " in text] == kept[:-1]
    policy = Policy("oldest", WINDOW)
    one_more = [chat(12)[0], *chat(12)[1 + 2 * (kept[0] - 1) :]]
    assert len(engine.tokenizer.encode_chat(one_more)) > policy.room  # no turn went without need


def test_middle_turns_go_and_the_first_and_the_latest_stay(engine: Engine) -> None:
    text, num_out = fitted(engine, Policy("middle", WINDOW), chat(12))
    assert num_out > 0
    kept = [i for i in range(12) if f"question {i} " in text]
    assert kept[0] == 0
    assert kept[1:] == list(range(kept[1], 12))
    assert "the secret is 1234" in text


def test_a_chat_that_fits_is_left_alone(engine: Engine) -> None:
    assert fitted(engine, Policy("oldest", WINDOW), chat(1))[1] == 0


def test_one_turn_too_long_is_refused_by_oldest_and_cut_by_middle(engine: Engine) -> None:
    """The secret of the first line: `middle` keeps it, `oldest` never cuts the user's own words."""
    messages = [{"role": "user", "content": "The secret is 你好1234.\n" + "river " * 900 + "\nWhich one?"}]
    with pytest.raises(ContextFullError, match=rf"has \d+ tokens and the context window holds {WINDOW}"):
        fitted(engine, Policy("oldest", WINDOW), messages)
    text, num_out = fitted(engine, Policy("middle", WINDOW, 64), messages)
    assert num_out > 0
    assert "The secret is 你好1234." in text
    assert "Which one?" in text
    assert "\ufffd" not in text


def test_a_system_text_longer_than_the_window_is_refused(engine: Engine) -> None:
    messages = [{"role": "system", "content": "rule " * 900}, {"role": "user", "content": "hello"}]
    for truncate in POLICIES:
        with pytest.raises(ContextFullError):
            fitted(engine, Policy(truncate, WINDOW), messages)


def test_a_later_system_message_and_a_tools_answer_go_with_their_rules() -> None:
    messages: list[Message] = [
        {"role": role, "content": str(i)}
        for i, role in enumerate(["user", "assistant", "tool", "assistant", "system", "user"])
    ]
    assert [message["content"] for message in without(messages, 0, 1)] == ["4", "5"]


def test_without_truncation_both_numbers_are_said_and_an_answer_ends_at_the_window(
    tiny_model_path: Path,
) -> None:
    for num_ids in (128, 129):
        engine = scripted_engine(tiny_model_path, [9], num_prompt=num_ids)
        with pytest.raises(ContextFullError, match=f"has {num_ids} tokens and the context window holds 128"):
            engine.submit(Request(prompt_ids=[5] * num_ids))
    for num_ids in (1, 127):
        engine = scripted_engine(tiny_model_path, [9], num_prompt=num_ids)  # a model that never ends
        pieces = list(engine.stream(Request(prompt_ids=[5] * num_ids)))
        assert pieces[-1].finish_reason == "length"
        assert num_ids + sum(len(piece.token_ids) for piece in pieces) == 128
