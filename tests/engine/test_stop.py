from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenglass.engine.stop import StopStrings


def run(stops: tuple[str, ...], pieces: list[str]) -> tuple[str, bool]:
    matcher, shown = StopStrings(stops), ""
    for piece in pieces:
        text, is_stopped = matcher.push(piece)
        shown += text
        if is_stopped:
            return shown, True
    return shown + matcher.flush(), False


@pytest.mark.parametrize(
    ("stops", "pieces", "shown", "is_stopped"),
    [
        # B08: several tokens; B10: in the middle of a token, and a near miss; B12: no beginning leaks.
        (("O P Q",), [" O", " P", " Q"], " ", True),
        (("\n",), ["?\n"], "?", True),
        (("END",), ["EN", "TER", " the"], "ENTER the", False),
        (("<START>",), ["a<", "START", ">b"], "a", True),
        (("<START>",), ["a<", "STA"], "a<STA", False),
        (("aab",), ["a", "a", "a", "b"], "a", True),
        (("long stop", "st"), ["a st"], "a ", True),
        (("é",), ["caf", "é"], "caf", True),
        ((), ["x", "y"], "xy", False),
    ],
)
def test_known_cases(stops: tuple[str, ...], pieces: list[str], shown: str, is_stopped: bool) -> None:
    assert run(stops, pieces) == (shown, is_stopped)


@given(
    st.lists(st.text("ab<", max_size=4), max_size=12),
    st.lists(st.text("ab<", min_size=1, max_size=4), min_size=1, max_size=3),
)
def test_any_cut_of_the_text_gives_what_the_whole_gives(pieces: list[str], stops: list[str]) -> None:
    text = "".join(pieces)
    # In pieces, the stop that is complete first wins: the one that ends first, then the one that began first.
    ends = [(text.find(s) + len(s), text.find(s)) for s in stops if s in text]
    characters, is_stopped = run(tuple(stops), list(text))
    assert is_stopped == bool(ends)
    if ends:
        first_end = min(ends)[0]
        assert characters == text[: min(at for end, at in ends if end == first_end)]
    else:
        assert characters == text
    whole, _ = run(tuple(stops), pieces)
    assert text.startswith(whole)
    assert not any(stop in whole for stop in stops)
