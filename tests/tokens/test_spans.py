"""Tokens in their text: whole characters, parts of one, what the tokenizer added or dropped, and scripts."""

from __future__ import annotations

import pytest

from tokenglass.tokens.spans import Spans, estimate, script_of


def pieces_of(text: str, *cuts: int) -> list[bytes]:
    raw = text.encode()
    return [raw[a:b] for a, b in zip((0, *cuts), (*cuts, len(raw)), strict=True)]


def test_tokens_of_whole_characters_have_slices_and_no_parts() -> None:
    spans = Spans("天空ok", pieces_of("天空ok", 6))
    assert [spans.chars(i) for i in range(2)] == [(0, 2), (2, 4)]
    assert spans.parts(0) == spans.parts(1) == []


def test_parts_of_a_character_are_counted_in_its_bytes() -> None:
    spans = Spans("a天", pieces_of("a天", 2, 3))
    assert [[str(part) for part in spans.parts(i)] for i in range(3)] == [["天 1/3"], ["天 2/3"], ["天 3/3"]]
    assert [spans.chars(i) for i in range(3)] == [(0, 2), (1, 2), (1, 2)]


def test_a_token_may_end_one_character_and_begin_the_next() -> None:
    spans = Spans("天空", pieces_of("天空", 1, 5))
    assert [str(part) for part in spans.parts(1)] == ["天 2-3/3", "空 1-2/3"]


def test_bos_stands_nowhere_and_the_added_space_has_no_place() -> None:
    spans = Spans("hi", [b"<s>", b" hi"])
    assert [spans.chars(i) for i in range(2)] == [None, (0, 2)]
    assert spans.is_exact


def test_dropped_and_composed_bytes_do_not_move_what_follows() -> None:
    spans = Spans("a\x04b e\u0301 z", [b"a", b"b", b" ", "é".encode(), b" z"])
    assert [spans.chars(i) for i in range(5)] == [(0, 1), (2, 3), (3, 4), None, (6, 8)]
    assert not spans.is_exact


def test_empty_text_has_nothing() -> None:
    spans = Spans("", [])
    assert spans.is_exact
    assert spans.by_script() == {}
    assert estimate("") == (0, 0)


def test_scripts_share_a_token_by_bytes_and_add_up() -> None:
    text = "天空 ok42😊!"
    spans = Spans(text, pieces_of(text, 3, 9, 11))
    scripts = spans.by_script()
    assert scripts["Han"][0] == 2
    assert scripts["Han"][1] == pytest.approx(1.5)
    assert scripts["digits"][0] == 2
    assert sum(chars for chars, _ in scripts.values()) == len(text)
    assert sum(tokens for _, tokens in scripts.values()) == pytest.approx(4)


@pytest.mark.parametrize(
    ("char", "script"),
    [("天", "Han"), ("é", "Latin"), ("7", "digits"), ("😊", "emoji"), ("☺", "emoji"), ("の", "kana"),
     ("한", "Hangul"), ("Ж", "Cyrillic"), ("\n", "spaces"), ("，", "punctuation"), ("+", "punctuation"),
     ("\u202e", "other"), ("\x1b", "other"), ("〇", "Han")],
)  # fmt: skip
def test_script(char: str, script: str) -> None:
    assert script_of(char) == script


def test_rule_of_thumb_is_a_range() -> None:
    assert estimate("天空是蓝") == (2, 4)
    assert estimate("twelve chars") == (3, 4)
    assert estimate("a") == (1, 1)


def test_words_in_lower_case_are_found_and_the_text_is_not_called_exact() -> None:
    spans = Spans("Hello hello", [b"hello", b"hello"])
    assert [spans.chars(0), spans.chars(1)] == [(0, 5), (6, 11)]
    assert not Spans("Hi", [b"hi"]).is_exact
    assert Spans("Hi", [b"Hi"]).is_exact
