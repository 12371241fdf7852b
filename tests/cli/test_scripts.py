"""The hint for prompts in a script that the model can hardly write; the tokenizer decides, not a name."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tokenglass.cli.scripts import INSTEAD, script_hint
from tokenglass.formats import GGUFFile
from tokenglass.hub.catalogue import find
from tokenglass.tokens import Tokenizer


@pytest.fixture
def tokenizer(tiny_model_path: Path) -> Tokenizer:
    """Knows 你 and 好 as one token each; every other Chinese character takes three."""
    with GGUFFile.open(tiny_model_path) as file:
        return Tokenizer.from_gguf(file)


def test_chinese_that_takes_many_tokens_gets_the_hint(tokenizer: Tokenizer) -> None:
    hint = script_hint(tokenizer, "Translate: 猫坐在垫子上")
    assert hint is not None
    assert hint.startswith("this model needs 3.0 tokens for each Chinese character")


@pytest.mark.parametrize("text", ["你好你好", "The cat sat on the mat", "猫坐", "", "ねこはここにいます"])
def test_other_texts_get_none(tokenizer: Tokenizer, text: str) -> None:
    assert script_hint(tokenizer, text) is None


def test_long_text_is_judged_by_a_sample(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []
    encode = tokenizer.encode

    def counted(text: str, *, bos: bool | None = None) -> list[int]:
        lengths.append(len(text))
        return encode(text, bos=bos)

    monkeypatch.setattr(tokenizer, "encode", counted)
    assert script_hint(tokenizer, "猫" * 100_000)
    assert lengths == [2000]


def test_hint_goes_to_stderr_and_the_answer_still_comes(tokenglass_: Command, tiny_model_path: Path) -> None:
    outcome = tokenglass_("run", "猫坐在垫子上", "-m", tiny_model_path, "--max-tokens", 4, "--json")
    assert outcome.status == 0
    assert "can hardly write Chinese" in outcome.err.splitlines()[1]
    assert outcome.json["usage"]["completion_tokens"] == 4


def test_chat_says_it_once(
    tokenglass_: Command, tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "hello\n猫坐在垫子上\n猫又坐在垫子上\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    outcome = tokenglass_("chat", "-m", tiny_model_path, "--max-tokens", 4, "--json")
    assert outcome.status == 0
    assert outcome.err.count("can hardly write Chinese") == 1
    assert len(outcome.out.splitlines()) == 3


def test_hint_names_a_model_that_runs() -> None:
    entry = find(INSTEAD.split()[0])
    assert entry is not None
    assert entry.obstacle is None
    assert f"pull {entry.name})" in INSTEAD


@pytest.mark.real_models
def test_default_model_gets_the_hint(real_model_path: Path) -> None:
    with GGUFFile.open(real_model_path) as file:
        hint = script_hint(Tokenizer.from_gguf(file), "给我讲一个关于猫的故事，要有趣一些。")
    assert hint is not None
    assert "1.6" in hint or "1.7" in hint or "1.5" in hint
