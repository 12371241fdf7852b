"""Ids equal the references' on 2,000 hard lines: by hashes that are committed, and live under `oracle`."""

from __future__ import annotations

import json
import unicodedata
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from tests.tokens import templates
from tests.tokens.corpus import lines
from tests.tokens.make_golden import GOLDEN, ids_hash, reference
from tests.tokens.vocabularies import open_gguf, sentencepiece_metadata
from tokenglass.formats import GGUFFile
from tokenglass.tokens import Tokenizer

CHAT = [
    {"role": "user", "content": "1 < 2 | 你好 😊\n\n"},
    {"role": "assistant", "content": " so it is."},
    {"role": "user", "content": "  indent\tand  12345 "},
]


@pytest.fixture(scope="module")
def real(real_model_path: Path) -> Tokenizer:
    with GGUFFile.open(real_model_path) as gguf:
        return Tokenizer.from_gguf(gguf)


@pytest.mark.real_models
def test_the_corpus_is_the_one_of_the_golden_file() -> None:
    assert json.loads(GOLDEN.read_text())["corpus"] == f"{crc32(json.dumps(lines()).encode()):08x}"


@pytest.mark.real_models
@pytest.mark.parametrize(("key", "control"), [("plain", False), ("control", True)])
def test_ids_equal_the_golden_ones(real: Tokenizer, key: str, control: bool) -> None:
    expected = json.loads(GOLDEN.read_text())[key].split()
    wrong = [
        line
        for line, golden in zip(lines(), expected, strict=True)
        if ids_hash(real.encode(line, control=control)) != golden
    ]
    assert not wrong


@pytest.mark.oracle
@pytest.mark.real_models
def test_ids_equal_transformers(real: Tokenizer, real_model_path: Path) -> None:
    pytest.importorskip("transformers")
    tokenizer = reference(real_model_path)
    for line in lines():
        assert real.encode(line, control=True) == tokenizer(line, add_special_tokens=False).input_ids
        plain = tokenizer(line, add_special_tokens=False, split_special_tokens=True).input_ids
        assert real.encode(line) == plain


@pytest.mark.oracle
@pytest.mark.real_models
def test_transformers_alone_differs_only_at_space_before_digits(
    real: Tokenizer, real_model_path: Path
) -> None:
    pytest.importorskip("transformers")
    tokenizer = reference(real_model_path, original_cuts=False)
    different = [
        line
        for line in lines()
        if real.encode(line, control=True) != tokenizer(line, add_special_tokens=False).input_ids
    ]
    assert 0 < len(different) < len(lines()) / 2
    for line in different:
        assert any(a.isspace() and unicodedata.category(b)[0] == "N" for a, b in pairwise(line)), repr(line)


@pytest.mark.peers
@pytest.mark.real_models
def test_ids_equal_llama_cpp(real: Tokenizer, real_model_path: Path) -> None:
    other = llama_cpp_of(real_model_path)
    for line in lines():
        raw = line.encode()
        assert real.encode(line) == other.tokenize(raw, add_bos=False, special=False)
        assert real.encode(line, control=True) == other.tokenize(raw, add_bos=False, special=True)


@pytest.mark.oracle
@pytest.mark.real_models
def test_chat_ids_equal_transformers(real: Tokenizer, real_model_path: Path) -> None:
    pytest.importorskip("transformers")
    tokenizer = reference(real_model_path)
    for template in (None, templates.CHATML, templates.QWEN):
        ours = Tokenizer(real.vocabulary, lambda: real._plain, chat_template=template or real.chat.source)
        expected: Any = tokenizer.apply_chat_template(
            CHAT, chat_template=template, add_generation_prompt=True, return_dict=False
        )
        assert ours.encode_chat(CHAT) == expected
        ours.chat.close()


@pytest.mark.peers
def test_sentencepiece_ids_equal_llama_cpp(tmp_path: Path) -> None:
    with open_gguf(tmp_path, sentencepiece_metadata()) as gguf:
        ours = Tokenizer.from_gguf(gguf)
        other = llama_cpp_of(gguf.path)
    for line in [
        "hello world",
        " the  hello",
        "hellohello the\nworld",
        "你好, 世 é",
        "",
        "</s> hello <s>",
        *lines(),
    ]:
        raw = line.encode()
        assert ours.encode(line, bos=False) == other.tokenize(raw, add_bos=False, special=False), repr(line)
        assert ours.encode(line, bos=False, control=True) == other.tokenize(
            raw, add_bos=False, special=True
        ), line


def llama_cpp_of(path: Path) -> Any:
    llama_cpp = pytest.importorskip("llama_cpp")
    return llama_cpp.Llama(str(path), vocab_only=True, verbose=False)
