"""Cells of a terminal, and tokens written so that nothing in them is obeyed or hidden."""

from __future__ import annotations

import io
import sys

import pytest

from tokenglass.cli.columns import bar, bare, clip, escaped, left, percent, quoted, right, size, width


@pytest.mark.parametrize(
    ("text", "cells"), [("abc", 3), ("天空", 4), ("e\u0301", 1), ("ｆ", 2), ("ﾆ", 1), ("", 0)]
)
def test_width(text: str, cells: int) -> None:
    assert width(text) == cells


@pytest.mark.parametrize(
    "text", ["天空是蓝色的", "ab天c空d", "plain text", "e\u0301e\u0301e\u0301e\u0301 long"]
)
@pytest.mark.parametrize("cells", [3, 4, 5, 8])
def test_cells_are_kept_whatever_the_width_of_characters(text: str, cells: int) -> None:
    assert width(left(text, cells)) == cells
    assert width(clip(text, cells)) <= cells


def test_numbers_are_never_cut() -> None:
    assert right("123456", 3) == "123456"
    assert right("蓝", 4) == "  蓝"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b" the", '" the"'),
        ("天".encode(), '"天"'),
        ("天".encode()[:2], "e5 a4"),
        (b"\n\t", r'"\n\t"'),
        (b"\x1b[2J", r'"\x1b[2J"'),
        ("\u202eabc".encode(), r'"\u202eabc"'),
        ("\u0301".encode(), r'"\u0301"'),
        ("\u200d".encode(), r'"\u200d"'),
        (b'say "\\n"', r'"say \"\\n\""'),
        (b"", '""'),
    ],
)
def test_quoted_token_hides_nothing(raw: bytes, text: str) -> None:
    assert quoted(raw) == text


def test_emoji_sequences_stay_whole() -> None:
    assert escaped("👩‍💻 e\u0301") == "👩‍💻 e\u0301"


@pytest.mark.parametrize(("share", "text"), [(0, ""), (1, "████"), (0.5, "██"), (1 / 32, "▏"), (1.5, "████")])
def test_bar(share: float, text: str) -> None:
    assert bar(share, 4) == text


def test_bar_where_the_letters_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "latin-1"))
    assert bar(0.5, 4) == "##"


@pytest.mark.parametrize(
    ("share", "text"),
    [(1, "100.00%"), (0.71234, "71.23%"), (0.0000312, "0.0031%"), (3.14e-11, "3e-09%"), (0, "0")],
)
def test_percent_keeps_small_numbers(share: float, text: str) -> None:
    assert percent(share) == text


def test_a_bare_token_is_text_or_its_bytes_in_brackets() -> None:
    assert bare(b" the\n") == " the\\n"
    assert bare(b"\xe5\xa4") == "‹e5 a4›"


@pytest.mark.parametrize(
    ("num_bytes", "words"),
    [(None, "-"), (512, "512 B"), (2300, "2.3 kB"), (98_362_432, "98.4 MB"), (7 * 10**12, "7.0 TB")],
)
def test_sizes_are_said_in_the_unit_that_fits(num_bytes: int | None, words: str) -> None:
    assert size(num_bytes) == words
