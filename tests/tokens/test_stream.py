"""Cases B01, B02, B05 and B06: text that comes token by token equals text decoded at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tokens.vocabularies import byte_level_metadata, open_gguf, sentencepiece_metadata
from tokenglass.tokens import TextStream, Vocabulary
from tokenglass.tokens.gguf_vocabulary import vocabulary_of
from tokenglass.tokens.stream import decode

EMOJI = "😊".encode()


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    return vocabulary_of(open_gguf(tmp_path_factory.mktemp("v"), byte_level_metadata()))


@pytest.fixture(scope="module")
def sentencepiece(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    return vocabulary_of(open_gguf(tmp_path_factory.mktemp("v"), sentencepiece_metadata()))


def ids_of(vocabulary: Vocabulary, *texts: str) -> list[int]:
    by_text = {vocabulary.token_text(i): i for i in range(vocabulary.num_tokens)}
    return [by_text[text] for text in texts]


def byte_ids(raw: bytes) -> list[int]:
    return [3 + byte for byte in raw]  # both small vocabularies have their byte tokens there


def pushed(vocabulary: Vocabulary, ids: list[int]) -> list[str]:
    stream = TextStream(vocabulary)
    return [*map(stream.push, ids), stream.finish()]


def test_a_torn_emoji_comes_out_whole_and_once(byte_level: Vocabulary) -> None:
    assert pushed(byte_level, byte_ids(EMOJI)) == ["", "", "", "😊", ""]


def test_a_torn_tail_is_flushed_once(byte_level: Vocabulary) -> None:
    assert pushed(byte_level, byte_ids(b"a" + EMOJI[:3])) == ["a", "", "", "", "\ufffd"]
    assert decode(byte_level, byte_ids(EMOJI[:3])) == "\ufffd"


def test_token_bytes_are_the_real_bytes_and_join_to_the_text(byte_level: Vocabulary) -> None:
    raw = [byte_level.token_bytes(i) for i in byte_ids(EMOJI)]
    assert raw == [b"\xf0", b"\x9f", b"\x98", b"\x8a"]
    assert b"".join(raw).decode() == decode(byte_level, byte_ids(EMOJI))


def test_a_real_leading_space_is_kept(byte_level: Vocabulary) -> None:
    assert pushed(byte_level, ids_of(byte_level, "Ġthe", "Ġt")) == [" the", " t", ""]


def test_the_dummy_space_is_stripped_once(sentencepiece: Vocabulary) -> None:
    ids = ids_of(sentencepiece, "▁", "▁hello", "▁world")
    assert pushed(sentencepiece, ids) == ["", " hello", " world", ""]
    assert pushed(sentencepiece, ids_of(sentencepiece, "<s>", "▁hello")) == ["", "hello", ""]
    assert decode(sentencepiece, ids_of(sentencepiece, "▁world"), after=5) == " world"


def test_byte_tokens_become_characters_and_never_their_spelling(sentencepiece: Vocabulary) -> None:
    ids = [*ids_of(sentencepiece, "▁", "a"), *byte_ids(EMOJI), *ids_of(sentencepiece, "b")]
    assert pushed(sentencepiece, ids) == ["", "a", "", "", "", "😊", "b", ""]
    assert decode(sentencepiece, byte_ids(b"\x9f")) == "\ufffd"
    assert decode(sentencepiece, [*byte_ids(b"\x9f"), *ids_of(sentencepiece, "a")]) == "\ufffda"


def test_control_tokens_add_no_text_unless_asked_for(byte_level: Vocabulary) -> None:
    ids = [1, *byte_ids(b"hi"), 2]
    assert decode(byte_level, ids) == "hi"
    assert decode(byte_level, ids, show_control=True) == "<|im_start|>hi<|im_end|>"
    assert pushed(byte_level, [*byte_ids(EMOJI[:2]), 2, *byte_ids(EMOJI[2:])])[-2] == "😊"


@given(ids=st.lists(st.integers(3, 290), max_size=40))
def test_every_prefix_streams_to_its_whole_decode(byte_level: Vocabulary, ids: list[int]) -> None:
    stream = TextStream(byte_level)
    text = ""
    for end, token_id in enumerate(ids, 1):
        text += stream.push(token_id)
        whole = b"".join(map(byte_level.token_bytes, ids[:end])).decode("utf-8", errors="replace")
        assert whole.startswith(text)
        assert "".join(pushed(byte_level, ids[:end])) == whole
    assert text + stream.finish() == decode(byte_level, ids)


@given(ids=st.lists(st.integers(0, 285), max_size=40))
def test_sentencepiece_prefixes_stream_to_their_whole_decode(
    sentencepiece: Vocabulary, ids: list[int]
) -> None:
    raw = b"".join(sentencepiece.token_bytes(i) for i in ids if not sentencepiece.is_control(i))
    assert "".join(pushed(sentencepiece, ids)) == raw.removeprefix(b" ").decode("utf-8", errors="replace")
