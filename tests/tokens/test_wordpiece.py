"""BERT's rules on a small vocabulary; the real one against Transformers: test_originals.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tokens.vocabularies import byte_level_metadata, tokenizer_of
from tokenglass.tokens import TextStream, Tokenizer

WORDS = (
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "今", "天", "，", "run", "##ning", "##s", "hello", "world",
    ",", "un", "##run", "3", "##5", "cafe", "Run", "(", ")", "\u2028",
)  # fmt: skip


@pytest.fixture
def bert(tmp_path: Path) -> Tokenizer:
    return made(tmp_path)


def made(folder: Path, **config: object) -> Tokenizer:
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return Tokenizer.from_path(folder)


def pieces(tokenizer: Tokenizer, text: str, **options: bool) -> list[str]:
    return [tokenizer.vocabulary.token_text(i) for i in tokenizer.encode(text, **options)]


def test_chinese_is_cut_apart_and_words_by_the_longest_piece(bert: Tokenizer) -> None:
    assert pieces(bert, "今天，Running unruns") == ["今", "天", "，", "run", "##ning", "un", "##run", "##s"]
    assert pieces(bert, "Café 35 xyz") == ["cafe", "3", "##5", "[UNK]"]
    assert pieces(bert, "run" * 34) == ["[UNK]"], "a word of more than 100 characters"


def test_capitals_count_where_the_folder_says_so(tmp_path: Path) -> None:
    assert pieces(made(tmp_path, do_lower_case=False), "Run run CAFE") == ["Run", "run", "[UNK]"]


def test_no_special_token_is_put_around_a_text(bert: Tokenizer) -> None:
    """[SEP] behind a prompt would tell the Chinese GPT-2 that the text is over."""
    assert pieces(bert, "今天") == ["今", "天"]
    assert bert.vocabulary.end_ids == frozenset()


def test_special_tokens_are_text_unless_asked_for(bert: Tokenizer) -> None:
    assert "[SEP]" not in pieces(bert, "今[SEP]天")
    assert pieces(bert, "今[SEP]天", control=True) == ["今", "[SEP]", "天"]


@pytest.mark.parametrize(
    ("text", "decoded"),
    [
        ("今天，今天", "今天，今天"),
        ("Hello, World", "hello, world"),
        ("今天 hello world", "今天hello world"),
        ("hello (world) running", "hello (world) running"),
        ("xyz 今", "[UNK]今"),
    ],
)
def test_words_are_joined_as_text_is_written(bert: Tokenizer, text: str, decoded: str) -> None:
    ids = bert.encode(text)
    assert bert.decode(ids) == decoded
    stream = TextStream(bert.vocabulary)
    assert "".join(map(stream.push, ids)) + stream.finish() == decoded


def test_gguf_wordpiece_gives_the_same_ids(tmp_path: Path, bert: Tokenizer) -> None:
    """A GGUF marks the beginnings of words instead of their rests."""
    stored = [
        word if word.startswith("[") else word[2:] if word.startswith("##") else f"▁{word}" for word in WORDS
    ]
    metadata = byte_level_metadata()
    kinds = [3 if word.startswith("[") else 1 for word in WORDS]
    stored[WORDS.index("Run")] = "▁ran"  # else its words would say that capitals count
    ids = {"bos_token_id": 2, "eos_token_id": 3, "padding_token_id": 0, "unknown_token_id": 1}
    gguf = tokenizer_of(
        tmp_path, metadata, model="bert", tokens=stored, token_type=kinds, merges=None, pre=None, **ids
    )
    for text in ("今天，Running unruns", "Café 35 xyz", "今[SEP]天", "hello (world)"):
        assert gguf.encode(text) == bert.encode(text)
        assert gguf.encode(text, control=True) == bert.encode(text, control=True)
        assert gguf.decode(gguf.encode(text)) == bert.decode(bert.encode(text))
