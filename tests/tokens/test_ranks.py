"""Rank files against tiktoken's own rule, written down plainly: join where the joined rank is lowest."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenglass.errors import ModelFileError
from tokenglass.tokens import Tokenizer, ranks
from tokenglass.tokens.files import read_tokenizer
from tokenglass.tokens.ranks import ENCODINGS, Encoding, encoding_of

LETTERS = "ab="


def made(folder: Path, tokens: list[bytes]) -> Path:
    """A rank file of all bytes and `tokens`."""
    every = [*(bytes([byte]) for byte in range(256)), *tokens]
    path = folder / "small.tiktoken"
    path.write_bytes(b"".join(base64.b64encode(token) + b" %d\n" % i for i, token in enumerate(every)))
    return path


def joined(word: bytes, known: dict[bytes, int]) -> list[int]:
    """tiktoken's rule: the whole word if it is a token, else the leftmost pair of the lowest rank, again."""
    if word in known:
        return [known[word]]
    parts = [word[i : i + 1] for i in range(len(word))]
    while True:
        pairs = [
            (known[parts[i] + parts[i + 1]], i)
            for i in range(len(parts) - 1)
            if parts[i] + parts[i + 1] in known
        ]
        if not pairs:
            return [known[part] for part in parts]
        _, i = min(pairs)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]


@pytest.fixture(autouse=True)
def any_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files are known by no count of ranks: they are cut as r50k_base is."""
    small = Encoding("small", ENCODINGS["r50k_base"].pattern, {"<|endoftext|>": 1000}, 0)
    monkeypatch.setattr("tokenglass.tokens.files.guessed", lambda path, ranks: small)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_words_are_joined_as_by_tiktoken(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Any order of tokens, even where several ways lead to one: `aab` from `a ab` and from `aa b`."""
    words = st.text(LETTERS, min_size=1, max_size=12)
    text = data.draw(st.lists(words, min_size=1, max_size=4, unique=True))
    grown: list[bytes] = []
    for a, b in data.draw(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=12)):
        sources = [*(letter.encode() for letter in LETTERS), *grown]
        token = sources[a % len(sources)] + sources[b % len(sources)]
        if token not in grown:
            grown.append(token)
    path = made(tmp_path_factory.mktemp("r"), grown)
    tokenizer = Tokenizer.from_path(path)
    known = ranks.read_ranks(path)
    for word in text:
        cuts = [part for part in word.replace("=", "\0=\0").replace("\0\0", "").split("\0") if part]
        expected = [token_id for part in cuts for token_id in joined(part.encode(), known)]
        assert tokenizer.encode(word) == expected, (word, grown)


def test_special_tokens_and_bytes(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_path(made(tmp_path, [b" t", b"he"]))
    assert tokenizer.encode("a<|endoftext|>", control=True) == [97, 1000]
    assert tokenizer.decode(tokenizer.encode("你<|endoftext|> the")) == "你<|endoftext|> the"
    assert tokenizer.vocabulary.token_bytes(256) == b" t"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"IQ== 0\n!? 1\n", "line 2"),
        (b"IQ== 0\nIg== x\n", "line 2"),
        (b"IQ== 0\n", "a byte has no token"),
    ],
)
def test_a_broken_rank_file_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "x.tiktoken"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=problem):
        read_tokenizer(path)


def test_a_file_that_no_encoding_fits_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenglass.tokens.files.guessed", ranks.guessed)
    with pytest.raises(ModelFileError, match=r"256 tokens belong to no encoding we know.*cl100k_base"):
        read_tokenizer(made(tmp_path, []))


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        ("gpt-4o", "o200k_base"),
        ("GPT-4o-mini", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("gpt-4-turbo", "cl100k_base"),
        ("gpt-4.1", "o200k_base"),
        ("gpt-3.5-turbo-0125", "cl100k_base"),
        ("o200k_base", "o200k_base"),
        ("gpt-400", None),
        ("qwen3", None),
    ],
)
def test_names_of_models_lead_to_their_encoding(name: str, encoding: str | None) -> None:
    found = encoding_of(name)
    assert (found.name if found else None) == encoding
