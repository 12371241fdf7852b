"""Hostile text is shown, in a terminal and in a notebook, and never acts."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import tokenglass as tg
from tokenglass.api import look
from tokenglass.api.text import Token, Tokens

HOSTILE = "<script>alert('x')</script>\"><img src=x onerror=y>&lt;\x1b[2J\u202e\x00\n"


class Page(HTMLParser):
    """What a browser would see: the tags, and the text between them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def hostile_results(model: tg.LanguageModel) -> list[object]:
    tokens = Tokens(HOSTILE, [Token(7, HOSTILE.encode())])
    generation = model.generate("a", max_tokens=1)
    answer = tg.Generation(HOSTILE, (7,), "stop", (1,), generation.sampling, generation.timings)
    twice = Tokens(HOSTILE, [tokens[0]] * 2)
    score = tg.Score(twice, np.array([np.nan, -1.0]), np.array([0, 3]), [[], []])
    return [tokens, score, answer]


def test_html_has_only_our_own_tags(model: tg.LanguageModel) -> None:
    for result in hostile_results(model):
        page = Page(result._repr_html_())  # type: ignore[attr-defined]
        assert page.tags <= {"div", "span", "small", "br"}
        assert page.attributes <= {"style", "title"}
        assert "<script>alert('x')</script>" in page.text  # nothing lost either


def test_nothing_that_acts_reaches_a_terminal_or_a_page(model: tg.LanguageModel) -> None:
    for result in hostile_results(model):
        for shown in (repr(result), result._repr_html_()):  # type: ignore[attr-defined]
            assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", shown)


def test_a_distribution_is_a_table(model: tg.LanguageModel) -> None:
    distribution = model.next("the", top=3)
    page = Page(distribution._repr_html_())
    assert page.tags <= {"small", "table", "tr", "th", "td", "code", "span"}
    assert "all others" in page.text
    assert len(repr(distribution).splitlines()) == 6


@pytest.mark.parametrize(
    ("text", "expected"),
    [("<b>\n", "&lt;b&gt;\\n"), ("a\u202eb", "a\\u202eb"), ("'\"", "&#x27;&quot;"), ("你好 ", "你好 ")],
)
def test_shown(text: str, expected: str) -> None:
    assert look.shown(text) == expected


def test_heat_grows_with_surprise() -> None:
    assert [look.heat(bits) for bits in (float("nan"), 0.0, 6.0, 99.0)] == pytest.approx([0, 0, 0.35, 0.7])
