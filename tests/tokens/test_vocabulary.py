from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tokens.vocabularies import byte_level_metadata, open_gguf, sentencepiece_metadata
from tokenglass.errors import ModelFileError
from tokenglass.formats import GGUFFile
from tokenglass.tokens import TokenKind, Vocabulary
from tokenglass.tokens.gguf_vocabulary import vocabulary_of


def byte_level(folder: Path, **changes: Any) -> Vocabulary:
    return vocabulary_of(open_gguf(folder, byte_level_metadata(), **changes))


def sentencepiece(folder: Path, **changes: Any) -> Vocabulary:
    return vocabulary_of(open_gguf(folder, sentencepiece_metadata(), **changes))


def id_of(vocabulary: Vocabulary, text: str) -> int:
    return next(i for i in range(vocabulary.num_tokens) if vocabulary.token_text(i) == text)


def test_byte_level_letters_are_undone(tmp_path: Path) -> None:
    vocabulary = byte_level(tmp_path)
    assert vocabulary.token_bytes(id_of(vocabulary, "Ġthe")) == b" the"
    assert {vocabulary.token_bytes(i) for i in range(3, 259)} == {bytes([byte]) for byte in range(256)}
    assert vocabulary.token_bytes(1) == b"<|im_start|>"


def test_a_byte_level_token_outside_the_alphabet_is_plain_text(tmp_path: Path) -> None:
    metadata = byte_level_metadata(control=("<｜end▁of▁sentence｜>",), user_defined=("é ", "<think>"))
    vocabulary = vocabulary_of(open_gguf(tmp_path, metadata))
    last = vocabulary.num_tokens - 1
    assert vocabulary.token_bytes(last - 2).decode() == "<｜end▁of▁sentence｜>"
    assert vocabulary.token_bytes(last - 1).decode() == "é "
    assert vocabulary.end_ids == {0, 2, last - 2}
    assert vocabulary.user_defined == {"é ": last - 1, "<think>": last}


def test_sentencepiece_marks_and_bytes_are_undone(tmp_path: Path) -> None:
    vocabulary = sentencepiece(tmp_path)
    assert vocabulary.token_bytes(3 + 0xF0) == b"\xf0"
    assert vocabulary.token_bytes(id_of(vocabulary, "▁hello")) == b" hello"
    assert vocabulary.token_bytes(1) == b"<s>"
    assert (vocabulary.bos_id, vocabulary.eos_id, vocabulary.add_bos) == (1, 2, True)


def test_special_ids_and_control_tokens(tmp_path: Path) -> None:
    vocabulary = byte_level(tmp_path)
    assert (vocabulary.bos_id, vocabulary.eos_id, vocabulary.pad_id) == (1, 2, 2)
    assert vocabulary.control == {"<|endoftext|>": 0, "<|im_start|>": 1, "<|im_end|>": 2}
    assert vocabulary.end_ids == {0, 2}
    assert vocabulary.kind(0) is TokenKind.CONTROL
    assert not vocabulary.add_bos


def test_llama3_vocabularies_begin_with_bos_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    assert byte_level(tmp_path, pre="llama-bpe", add_bos_token=None).add_bos
    assert not byte_level(tmp_path, pre="llama-bpe", add_bos_token=False).add_bos
    assert not byte_level(tmp_path, pre="llama-bpe", add_bos_token=None, bos_token_id=None).add_bos


def test_a_turn_marker_typed_as_user_defined_is_control_all_the_same(tmp_path: Path) -> None:
    metadata = byte_level_metadata(user_defined=("<|eot_id|>", "<tool_call>"))
    vocabulary = vocabulary_of(open_gguf(tmp_path, metadata))
    assert "<|eot_id|>" in vocabulary.control
    assert vocabulary.control["<|eot_id|>"] in vocabulary.end_ids
    assert vocabulary.user_defined.keys() == {"<tool_call>"}


def test_without_token_types_only_the_named_ids_are_special(tmp_path: Path) -> None:
    vocabulary = sentencepiece(tmp_path, token_type=None)
    assert vocabulary.control == {"<s>": 1, "</s>": 2}
    assert vocabulary.token_bytes(3 + 10) == b"\n"
    assert byte_level(tmp_path, token_type=None).control == {"<|im_start|>": 1, "<|im_end|>": 2}


@pytest.mark.parametrize("text", ["<0xZZ>", "<0x-1>", "<0x1>", "<0x100>", "<0x 1>", "x", ""])
def test_a_malformed_byte_token_is_refused_and_never_an_index(tmp_path: Path, text: str) -> None:
    tokens = sentencepiece_metadata()["tokenizer.ggml.tokens"]
    tokens[3 + 65] = text
    with pytest.raises(ModelFileError, match=r"tokenizer\.ggml\.tokens: byte token 68"):
        sentencepiece(tmp_path, tokens=tokens)


def test_a_byte_spelling_that_is_not_a_byte_token_is_text(tmp_path: Path) -> None:
    metadata = sentencepiece_metadata()
    kinds = metadata["tokenizer.ggml.token_type"]
    kinds[3 + 65] = int(TokenKind.NORMAL)
    assert sentencepiece(tmp_path, token_type=kinds).token_bytes(3 + 65) == b"<0x41>"


@pytest.mark.parametrize("key", ["bos_token_id", "unknown_token_id"])
@pytest.mark.parametrize("value", [10**6, 0xFFFFFFFF, np.int32(-1)])
def test_an_id_outside_the_vocabulary_is_refused_by_key(tmp_path: Path, key: str, value: Any) -> None:
    with pytest.raises(ModelFileError, match=rf"tokenizer\.ggml\.{key}: .* is not in the vocabulary"):
        byte_level(tmp_path, **{key: value})


@pytest.mark.parametrize("key", ["eos_token_id", "eot_token_id", "eom_token_id"])
@pytest.mark.parametrize("value", [50256, 0xFFFFFFFF, np.int32(-1)])
def test_an_end_outside_the_vocabulary_is_ignored_and_it_is_said(
    tmp_path: Path, key: str, value: Any
) -> None:
    vocabulary = byte_level(tmp_path, **{key: value})
    assert vocabulary.end_ids == byte_level(tmp_path, **{key: None}).end_ids
    assert vocabulary.eos_id == (None if key == "eos_token_id" else 2)
    num = vocabulary.num_tokens
    assert vocabulary.notes == (
        f"the end token {value} is not in the vocabulary of {num} tokens: it is ignored",
    )


@pytest.mark.parametrize("kinds", [[1, 1], [-1], [7], []])
def test_wrong_token_types_are_refused(tmp_path: Path, kinds: list[int]) -> None:
    if len(kinds) == 1:
        kinds = [*byte_level_metadata()["tokenizer.ggml.token_type"][1:], *kinds]
    with pytest.raises(ModelFileError, match=r"tokenizer\.ggml\.token_type"):
        byte_level(tmp_path, token_type=kinds)


@pytest.mark.parametrize("tokens", [[b"\xff"], [b"\xe4\xbd", b"\xa0"], []])
def test_tokens_that_are_no_text_are_refused(tmp_path: Path, tokens: list[bytes]) -> None:
    if tokens:
        tokens += [text.encode() for text in byte_level_metadata()["tokenizer.ggml.tokens"][len(tokens) :]]
    with pytest.raises(ModelFileError, match=r"tokenizer\.ggml\.tokens"):
        byte_level(tmp_path, tokens=tokens)


@pytest.mark.parametrize("key", ["model", "tokens"])
def test_a_missing_key_is_named(tmp_path: Path, key: str) -> None:
    with pytest.raises(ModelFileError, match=rf"tokenizer\.ggml\.{key}"):
        byte_level(tmp_path, **{key: None})


def test_an_unsupported_tokenizer_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"'rwkv' is not supported yet; known are gpt2.*llama"):
        byte_level(tmp_path, model="rwkv")


def test_bos_wanted_without_a_bos_token_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"tokenizer\.ggml\.add_bos_token"):
        byte_level(tmp_path, add_bos_token=True, bos_token_id=None)


@pytest.mark.parametrize("token_id", [-1, 10**9])
def test_an_unknown_id_is_an_index_error(tmp_path: Path, token_id: int) -> None:
    vocabulary = byte_level(tmp_path)
    for lookup in (vocabulary.token_bytes, vocabulary.token_text, vocabulary.kind, vocabulary.is_control):
        with pytest.raises(IndexError, match="not in the vocabulary"):
            lookup(token_id)


def test_of_two_equal_tokens_both_decode(tmp_path: Path) -> None:
    tokens = byte_level_metadata()["tokenizer.ggml.tokens"]
    tokens[-1] = tokens[-2]
    vocabulary = byte_level(tmp_path, tokens=tokens)
    assert vocabulary.token_bytes(len(tokens) - 1) == vocabulary.token_bytes(len(tokens) - 2)


@pytest.mark.real_models
def test_the_real_vocabulary_opens_fast(real_model_path: Path) -> None:
    with GGUFFile.open(real_model_path) as gguf:
        seconds = []
        for _ in range(5):
            start = time.perf_counter()
            vocabulary = vocabulary_of(gguf)
            seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.03
    assert vocabulary.num_tokens == 49152
    assert len(vocabulary.control) == 17
    assert b"".join(vocabulary.token_bytes(i) for i in (19556, 905)) == b"Hello world"
