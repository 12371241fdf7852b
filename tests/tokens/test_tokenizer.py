from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tokens.vocabularies import byte_level_metadata, sentencepiece_metadata, tokenizer_of
from tokenglass.errors import ModelFileError, ParameterError
from tokenglass.formats import GGUFFile
from tokenglass.tokens import Tokenizer
from tokenglass.tokens.pretokenizers import PRE_TOKENIZERS
from tokenglass.tokens.vocabulary import byte_letters

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return tokenizer_of(tmp_path_factory.mktemp("v"), byte_level_metadata())


@pytest.fixture(scope="module")
def sentencepiece(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return tokenizer_of(tmp_path_factory.mktemp("v"), sentencepiece_metadata())


@pytest.fixture(scope="module")
def real(real_model_path: Path) -> Tokenizer:
    with GGUFFile.open(real_model_path) as gguf:
        return Tokenizer.from_gguf(gguf)


def pieces(tokenizer: Tokenizer, text: str, **options: Any) -> list[str]:
    return [tokenizer.vocabulary.token_text(i) for i in tokenizer.encode(text, **options)]


def test_merges_are_applied_within_words(tiny: Tokenizer) -> None:
    assert pieces(tiny, "the t") == ["t", "he", "Ġt"]
    assert pieces(tiny, "12") == ["1", "2"], "smollm cuts digits apart before the merge '1 2'"


@settings(max_examples=300)
@given(text=TEXTS)
def test_decoding_gives_the_text_back(tiny: Tokenizer, text: str) -> None:
    ids = tiny.encode(text)
    assert tiny.decode(ids) == text
    assert not any(tiny.vocabulary.is_control(i) for i in ids)


@given(text=TEXTS)
def test_decoding_gives_the_text_back_by_sentencepiece(sentencepiece: Tokenizer, text: str) -> None:
    text = text.replace("▁", " ")  # the mark itself cannot be told from a space, there as in the original
    assert sentencepiece.decode(sentencepiece.encode(text)) == text


def test_control_tokens_in_text_are_text_unless_asked_for(tiny: Tokenizer) -> None:
    text = "a<|im_end|><|im_<|im_end|>"
    assert tiny.decode(tiny.encode(text)) == text
    assert 2 not in tiny.encode(text)
    marked = tiny.encode(text, control=True)
    assert [i for i in marked if tiny.vocabulary.is_control(i)] == [2, 2]
    assert tiny.decode(marked) == "a<|im_"


def test_the_longest_control_token_wins(tmp_path: Path) -> None:
    tokenizer = tokenizer_of(tmp_path, byte_level_metadata(control=("<|a|>", "<|a|>|>")))
    assert pieces(tokenizer, "<|a|>|>", control=True) == ["<|a|>|>"]


def test_a_merge_cannot_make_a_control_token(tmp_path: Path) -> None:
    metadata = byte_level_metadata(control=("ab",))
    metadata["tokenizer.ggml.merges"] = ["a b", *metadata["tokenizer.ggml.merges"]]
    assert pieces(tokenizer_of(tmp_path, metadata), "ab") == ["a", "b"]
    tokens = sentencepiece_metadata()["tokenizer.ggml.tokens"]
    tokens[-2:] = ["</", "s>"]
    tokenizer = tokenizer_of(tmp_path, sentencepiece_metadata(), tokens=tokens)
    assert pieces(tokenizer, "</s>", bos=False)[1:] == ["</", "s>"] or 2 not in tokenizer.encode("</s>")


def test_a_word_that_is_a_control_token_is_text_where_merges_are_ignored(tmp_path: Path) -> None:
    metadata = byte_level_metadata(control=("EOT",))
    tokenizer = tokenizer_of(tmp_path, metadata, pre="llama-bpe")
    assert pieces(tokenizer, "EOT", bos=False) == ["E", "O", "T"]


def test_user_defined_tokens_are_found_in_plain_text(tmp_path: Path) -> None:
    tokenizer = tokenizer_of(tmp_path, byte_level_metadata(user_defined=("<think>", "你好 ")))
    assert pieces(tokenizer, "a<think>你好 b") == ["a", "<think>", "你好 ", "b"]


def test_bos_is_added_as_the_file_says_and_never_twice(tmp_path: Path, tiny: Tokenizer) -> None:
    assert tiny.encode("a") == tiny.encode("a", bos=False)
    assert tiny.encode("a", bos=True)[0] == 1
    tokenizer = tokenizer_of(tmp_path, byte_level_metadata(), add_bos_token=True)
    assert tokenizer.encode("") == [1]
    assert tokenizer.encode("<|im_start|>a", control=True)[:2] == [1, tokenizer.encode("a", bos=False)[0]]
    assert tokenizer.encode("a", bos=False)[0] != 1


def test_sentencepiece_merges_by_score_and_falls_back_to_bytes(sentencepiece: Tokenizer) -> None:
    assert pieces(sentencepiece, "hello world") == ["<s>", "▁hello", "▁world"]
    assert pieces(sentencepiece, " the", bos=False) == ["▁", "▁the"]
    assert pieces(sentencepiece, "é", bos=False) == ["▁", "<0xC3>", "<0xA9>"]
    assert pieces(sentencepiece, "<0x41>", bos=False)[1:3] == ["<0x3C>", "<0x30>"]


def test_sentencepiece_without_space_prefix(tmp_path: Path) -> None:
    tokenizer = tokenizer_of(tmp_path, sentencepiece_metadata(), add_space_prefix=False)
    assert pieces(tokenizer, "the", bos=False) == ["t", "he"]
    assert tokenizer.decode(tokenizer.encode(" the")) == " the"


@pytest.mark.parametrize("name", sorted(PRE_TOKENIZERS))
def test_every_known_pre_tokenizer_builds_and_loses_nothing(tmp_path: Path, name: str) -> None:
    tokenizer = tokenizer_of(tmp_path, byte_level_metadata(), pre=name, add_bos_token=False)
    text = "Hello WORLD it's 12345 \t\n\n你好，世界 x=1;  // 😊\r\n ٣٤ é"
    assert tokenizer.decode(tokenizer.encode(text)) == text


def words(folder: Path, name: str, text: str) -> list[str]:
    """The words that the named pre-tokenizer cuts `text` into: with every merge, each word is one token."""
    letters = byte_letters()
    spelled = "".join(letters[byte] for byte in text.encode())
    parts = {spelled[i:k] for i in range(len(spelled)) for k in range(i + 2, len(spelled) + 1)}
    merges = [f"{part[:cut]} {part[cut:]}" for part in sorted(parts, key=len) for cut in range(1, len(part))]
    metadata = byte_level_metadata()
    tokens = [*metadata["tokenizer.ggml.tokens"][:259], *sorted(parts)]
    tokenizer = tokenizer_of(
        folder, metadata, tokens=tokens, token_type=None, merges=merges, pre=name, add_bos_token=False
    )
    return [tokenizer.decode([i]) for i in tokenizer.encode(text)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpt-2", ["it", "'s", " 123", " ", " a", "!?", "\n"]),
        ("smollm", ["it", "'s", " ", "1", "2", "3", " ", " a", "!?", "\n"]),
        ("llama-bpe", ["it", "'s", " ", "123", " ", " a", "!?\n"]),
        ("qwen2", ["it", "'s", " ", "1", "2", "3", " ", " a", "!?\n"]),
        ("gpt-4o", ["it's", " ", "123", " ", " a", "!?\n"]),
        ("tekken", ["it", "'s", " ", "1", "2", "3", " ", " a", "!?\n"]),
        ("deepseek-llm", ["it", "'", "s", " ", "1", "2", "3", " ", " a", "!?", "\n"]),
        ("default", ["it", "'", "s", " ", "123", " ", " a", "!?", "\n"]),
    ],
)
def test_words_are_cut_as_the_named_model_cuts_them(tmp_path: Path, name: str, expected: list[str]) -> None:
    assert words(tmp_path, name, "it's 123  a!?\n") == expected


def test_qwen2_composes_characters_first(tmp_path: Path) -> None:
    tokenizer = tokenizer_of(tmp_path, byte_level_metadata(), pre="qwen2")
    assert tokenizer.decode(tokenizer.encode("e\u0301")) == "é"


def test_an_unknown_pre_tokenizer_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(
        ModelFileError, match=r"pre: the pre-tokenizer 'magic' is not known\. Known are: .*smollm"
    ):
        tokenizer_of(tmp_path, byte_level_metadata(), pre="magic")


@pytest.mark.parametrize("merges", [["a"], ["a b c"], ["a zz"], ["Q X"], [b"\xff a"]])
def test_bad_merges_are_refused(tmp_path: Path, merges: list[str]) -> None:
    tokenizer = tokenizer_of(tmp_path, byte_level_metadata(), merges=merges)
    with pytest.raises(ModelFileError, match=r"tokenizer\.ggml\.merges"):
        tokenizer.encode("a")


def test_scores_of_another_length_are_refused(tmp_path: Path) -> None:
    tokenizer = tokenizer_of(tmp_path, sentencepiece_metadata(), scores=np.zeros(3, np.float32))
    with pytest.raises(ModelFileError, match=r"tokenizer\.ggml\.scores: has 3 entries"):
        tokenizer.encode("a")


def test_half_a_surrogate_pair_is_refused(tiny: Tokenizer) -> None:
    with pytest.raises(ParameterError, match="text has half of a surrogate pair at character 1"):
        tiny.encode("a\ud83d")


def test_bos_from_a_model_without_one_is_refused(tmp_path: Path) -> None:
    tokenizer = tokenizer_of(tmp_path, byte_level_metadata(), bos_token_id=None)
    assert tokenizer.encode("a", bos=False) == tokenizer.encode("a")
    with pytest.raises(ParameterError, match="bos cannot be true"):
        tokenizer.encode("a", bos=True)


@pytest.mark.real_models
@settings(max_examples=300, deadline=None)
@given(text=TEXTS)
def test_the_real_tokenizer_gives_the_text_back_but_for_bytes_it_has_no_token_for(
    real: Tokenizer, text: str
) -> None:
    missing = bytes([0x04, 0x06, 0x13, 0x14, 0x16, 0x1D, 0xF1, 0xF2])  # in the original as well
    kept = bytes(byte for byte in text.encode() if byte not in missing)
    assert b"".join(map(real.vocabulary.token_bytes, real.encode(text))) == kept
