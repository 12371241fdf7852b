"""`tokenglass score` and `perplexity`: numbers of the API, what is shown, mistakes, and Ctrl-C."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tokenglass as tg
from tests.cli.conftest import Command
from tokenglass.cli import perplexity as verb
from tokenglass.cli.columns import width
from tokenglass.engine.scoring import Perplexity

TEXT = "the water flows under the old bridge"


@pytest.fixture
def score(tokenglass_: Command, tiny_model_path: Path) -> Command:
    return lambda *arguments: tokenglass_("score", "-m", tiny_model_path, "--threads", 1, *arguments)


@pytest.fixture
def perplexity(tokenglass_: Command, tiny_model_path: Path) -> Command:
    return lambda *arguments: tokenglass_("perplexity", "-m", tiny_model_path, "--threads", 1, *arguments)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT * 30, encoding="utf-8")
    return path


def test_numbers_are_those_of_the_api(score: Command, tiny_model_path: Path) -> None:
    (found,) = score(TEXT, "--json", "--top", 2).json["scores"]
    expected = tg.load(tiny_model_path, num_threads=1).score(TEXT, top_logprobs=2)
    assert found["total_logprob"] == pytest.approx(expected.total_logprob)
    assert found["perplexity"] == pytest.approx(expected.perplexity)
    for shown, token in zip(found["content"], expected.content, strict=True):
        assert (bytes(shown["bytes"]), shown["logprob"]) == (token.bytes, token.logprob)
        assert [best["logprob"] for best in shown["top_logprobs"]] == [t.logprob for t in token.top_logprobs]


def test_continuations_are_ranked(score: Command) -> None:
    words = [" flows", " stays", "!"]
    arguments = [word for text in words for word in ("-c", text)]
    record = score("the water", "--json", *arguments).json["scores"]
    assert [one["text"] for one in record] == words
    order = sorted(record, key=lambda one: -one["total_logprob"])
    lines = score("the water", *arguments).out.splitlines()[1:]
    assert [line.split('"')[1] for line in lines] == [one["text"] for one in order]
    shares = [float(line.split()[-1].rstrip("%")) for line in lines]
    assert sum(shares) == pytest.approx(100, abs=0.1)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_lines_fit_80_columns_and_obey_nothing(score: Command, lang: str) -> None:
    for more in ((), ("-c", "你\x1b[2Jb" * 20, "-c", "x")):
        outcome = score("你好 a\x1b[2J\u202e\x07", "--lang", lang, *more)
        assert outcome.status == 0, outcome.err
        assert all(width(line) <= 80 for line in outcome.out.splitlines())
        assert not set(outcome.out) & set("\x1b\x07\u202e")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("",), "is empty"),
        (("a" * 3000,), "window holds 512"),
        (("the", "-c", ""), "continuation is empty"),
        (("the", "--top", "-1"), "top must be a whole number"),
    ],
)
def test_a_mistake_is_one_line(score: Command, arguments: tuple[str, ...], words: str) -> None:
    outcome = score(*arguments)
    assert (outcome.status, outcome.out) == (2, "")
    assert words in outcome.err


def test_perplexity_of_a_file(perplexity: Command, file: Path, tiny_model_path: Path) -> None:
    model = tg.load(tiny_model_path, num_threads=1)
    expected = model.perplexity(TEXT * 30, window=100, stride=50)
    outcome = perplexity(file, "--window", 100, "--stride", 50, "--json")
    assert outcome.json["perplexity"] == pytest.approx(expected.perplexity)
    assert outcome.json["bits_per_byte"] == pytest.approx(expected.bits_per_byte)
    assert outcome.json["tokens"] == expected.tokens
    assert f"window {expected.num_windows} of {expected.num_windows}" in outcome.err
    assert "每字节" in perplexity(file, "--lang", "zh").out


def test_ctrl_c_gives_the_figures_so_far(
    perplexity: Command, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: Any) -> Iterator[Perplexity]:
        yield Perplexity(10, 20, -10.0, 1, 5)
        raise KeyboardInterrupt

    monkeypatch.setattr(verb, "perplexity", interrupted)
    outcome = perplexity(file)
    assert outcome.status == 130
    assert "stopped after window 1 of 5" in outcome.out
    assert f"perplexity {math.e:.4f}" in outcome.out


@pytest.mark.parametrize(
    ("content", "words"), [(b"", "is empty"), (b"a\xff", "not UTF-8 at byte 1"), (b"a", "at least two")]
)
def test_a_file_that_cannot_be_scored(
    perplexity: Command, tmp_path: Path, content: bytes, words: str
) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(content)
    outcome = perplexity(path)
    assert outcome.status == 2
    assert words in outcome.err


def test_a_file_that_is_not_there(perplexity: Command, tmp_path: Path) -> None:
    assert "cannot read" in perplexity(tmp_path / "none").error
    assert "cannot read" in perplexity(tmp_path).error
