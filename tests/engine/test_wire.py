"""Records cross as they are, and nothing else gets through."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenglass import errors
from tokenglass.engine import Piece, Request, Timings
from tokenglass.engine.messages import Answered, Asked, Failed, Load, Submit, Told
from tokenglass.engine.wire import HEAD_BYTES, MAX_FRAME_BYTES, Frames, WireError, frame
from tokenglass.errors import ContextFullError, ModelFileError, ParameterError, TokenglassError
from tokenglass.sampling import Sampling
from tokenglass.trace import Decision
from tokenglass.trace.records import Candidate, Stage


def there_and_back(hint: Any, value: object) -> Any:
    (got,) = Frames(hint).push(frame(hint, value))
    return got


REQUEST = Request(
    prompt_ids=[5, 6, 7],
    sampling=Sampling(temperature=0.7, top_k=4, logit_bias={3: -100.0, 9: 2}, seed=(1 << 64) - 1),
    max_tokens=9,
    min_tokens=2,
    stop=("END", "天", "\ud83d"),  # half a character too
    ignore_eos=True,
    continues_text=True,
    use_cache=False,
    trace_top=3,
)
DECISION = Decision(
    5,
    2,
    -1.25,
    -0.5,
    1.5,
    (Stage("top_k", 4, 4, 0.9),),
    (Candidate(5, 1.5, 0.25, 0.5), Candidate(6, -math.inf, 0.0, 0.0)),
    0.1,
    0.0,
)


def test_a_request_arrives_with_every_field() -> None:
    defaults = Request(prompt_ids=[1])
    for field in dataclasses.fields(Request):
        if getattr(REQUEST, field.name) == getattr(defaults, field.name):
            pytest.fail(f"give REQUEST another {field.name}: here it would be missed")
    assert there_and_back(Asked, Submit(1, 2.5, REQUEST)) == Submit(1, 2.5, REQUEST)
    assert there_and_back(Request, defaults) == defaults  # its seed was drawn and goes along


def test_a_piece_arrives_with_every_field() -> None:
    timings = Timings(3, 1, 2, 4, 0.1, 1 / 3, 1e9 + 0.123456789)
    told = Told(Load(1, 2, 3, 4, 5), (1,), ((1, Piece("好", (5,), "stop", timings, 1 / 3, DECISION)),))
    got = there_and_back(Answered, told)
    assert got == told
    ((_, piece),) = got.pieces
    assert (piece.timings, piece.at_s, piece.decision) == (timings, 1 / 3, DECISION)
    assert type(piece.decision) is Decision
    assert type(piece.decision.top[0]) is Candidate


def all_errors() -> list[Exception]:
    made: dict[type[Exception], tuple[object, ...]] = {
        errors.ParameterError: ("top_p", "is wrong"),
        errors.ContextFullError: (5, 4),
        errors.ModelFileError: (Path("a/b.gguf"), "field", "is cut"),
        errors.ModelOutputError: (7,),
        errors.MissingExtraError: ("this", "serve"),
    }
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    return [kind(*made.get(kind, ("it is so",))) for kind in kinds]


@pytest.mark.parametrize("error", all_errors(), ids=lambda error: type(error).__name__)
def test_an_error_arrives_as_itself(error: Exception) -> None:
    got = there_and_back(Answered, Failed(error)).error
    assert type(got) is type(error)
    assert str(got) == str(error)
    assert vars(got) == vars(error)


def test_a_remedy_arrives() -> None:
    error = ModelFileError(Path("x.gguf"), "version", "is 9", remedy="Convert it again")
    got = there_and_back(Answered, Failed(error)).error
    assert (got.remedy, got.path, got.field) == ("Convert it again", Path("x.gguf"), "version")


def test_an_error_of_the_system_arrives() -> None:
    got = there_and_back(Answered, Failed(FileNotFoundError(2, "No such file", "x.gguf"))).error
    assert isinstance(got, FileNotFoundError)
    assert (got.errno, got.filename) == (2, "x.gguf")


def test_of_an_error_that_is_none_of_ours_the_words_arrive() -> None:
    got = there_and_back(Answered, Failed(ZeroDivisionError("by zero"))).error
    assert type(got) is TokenglassError
    assert str(got) == "ZeroDivisionError: by zero"


class Pair(NamedTuple):
    left: int
    right: str | None


@dataclass(frozen=True)
class Odd:
    """Kinds of fields that others may have."""

    pair: Pair
    names: Mapping[str, tuple[Pair, ...]]
    either: int | str | Pair | None
    kind: Literal["a", "b"]
    anything: Any
    some: frozenset[int] = frozenset()
    hidden: int = dataclasses.field(default=0, init=False)


def test_other_kinds_of_fields() -> None:
    for either in (1, "1", Pair(1, None), None):
        odd = Odd(
            Pair(1, "x"),
            {"n": (Pair(2, None),)},
            either,
            "b",
            {"type": ["object", None, 1.5]},
            frozenset({4}),
        )
        assert there_and_back(Odd, odd) == odd


def test_a_type_that_has_no_form_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="complex"):
        frame(complex, 1j)


@given(st.lists(st.text(), max_size=5), st.lists(st.integers(1, 50), min_size=1))
def test_messages_are_found_however_the_bytes_are_cut(texts: list[str], cuts: list[int]) -> None:
    data = b"".join(frame(str, text) for text in texts)
    frames, at = Frames(str), 0
    got: list[str] = []
    for cut in cuts * (len(data) // sum(cuts) + 1):
        got += frames.push(data[at : at + cut])
        at += cut
    assert got == texts


def pushed(body: bytes) -> list[Any]:
    return list(Frames(Answered).push(len(body).to_bytes(HEAD_BYTES, "big") + body))


GOOD = json.loads(frame(Answered, Told(Load(), (1,), ((1, Piece("x", (5,))),)))[HEAD_BYTES:])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"\xff\xfe",
        b"nonsense",
        b"[9, []]",
        b"[true, []]",
        b"[1]",
        b'[0, ["x", 1, [], 0, []]]',
        b'[2, [["NoSuchError", "x", []]]]',
        b'[2, [["Path", "x", []]]]',
        b'[2, [["TokenglassError", "x", [["__class__", [9, 1]]]]]]',
        b"[" * 100_000,
        b"[1, [" + b"9" * 5000 + b"]]",
    ],
    ids=lambda body: repr(body[:30]),
)
def test_what_is_no_message_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (JSON's own, and ours)
        pushed(body)


@given(st.data())
def test_a_message_with_something_else_in_one_place_is_refused_or_read(data: st.DataObject) -> None:
    """Never another exception."""
    message = json.loads(json.dumps(GOOD))
    holder: Any = message
    while True:
        at = data.draw(st.integers(0, len(holder) - 1))
        if isinstance(holder[at], list) and holder[at] and data.draw(st.booleans()):
            holder = holder[at]
            continue
        holder[at] = data.draw(st.sampled_from([None, True, -1, 1.5, "x", [], [[]], {}, {"a": 1}]))
        break
    with suppress(WireError):
        pushed(json.dumps(message).encode())


def test_a_message_that_is_too_long_is_refused_before_it_has_come() -> None:
    with pytest.raises(WireError):
        list(Frames(str).push((MAX_FRAME_BYTES + 1).to_bytes(HEAD_BYTES, "big")))


def test_a_request_is_held_to_its_own_rules_where_it_arrives() -> None:
    message = json.loads(frame(Request, REQUEST)[HEAD_BYTES:])
    message[0] = []
    body = json.dumps(message).encode()
    with pytest.raises(ParameterError, match="empty"):
        list(Frames(Request).push(len(body).to_bytes(HEAD_BYTES, "big") + body))


def test_numbers_of_a_full_context_arrive() -> None:
    got = there_and_back(Answered, Failed(ContextFullError(9, 8))).error
    assert (got.prompt_tokens, got.context_length) == (9, 8)
