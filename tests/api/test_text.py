from __future__ import annotations

import pytest

import tokenglass as tg
from tokenglass.api.text import places


def test_tokens_join_to_the_text_and_know_their_places(model: tg.LanguageModel) -> None:
    text = "the 你好 😀!"
    tokens = model.tokenize(text)
    assert b"".join(tokens.bytes).decode() == text
    assert model.detokenize(tokens.ids) == text
    for token in tokens:
        assert token.start is not None
        assert token.end is not None
        assert token.bytes in text[token.start : token.end].encode()
    assert tokens.offsets[-1] == (len(text) - 1, len(text))


def test_part_of_a_character_has_the_characters_place_and_reads_as_bytes(model: tg.LanguageModel) -> None:
    tokens = model.tokenize("a😀")
    assert tokens.pieces == ("a", "\\xf0", "\\x9f", "\\x98", "\\x80")
    assert tokens.offsets == ((0, 1), (1, 2), (1, 2), (1, 2), (1, 2))


def test_control_tokens_stand_in_the_text_only_when_asked(model: tg.LanguageModel) -> None:
    assert 2 not in model.tokenize("a<|im_end|>").ids
    assert model.tokenize("a<|im_end|>", control=True).offsets == ((0, 1), (1, 11))
    assert model.tokenize("a", bos=True).offsets == (None, (0, 1))


@pytest.mark.parametrize(
    ("text", "raw", "expected"),
    [
        ("é!", [b"\xc3", b"\xa9", b"!"], [(0, 1), (0, 1), (1, 2)]),
        ("ab", [b" ab"], [(0, 2)]),  # SentencePiece's space before the text
        ("ab", [b" ", b"ab"], [(0, 0), (0, 2)]),
        ("AB", [b"ab"], [None]),  # a tokenizer that changes case
        ("ab", [None, b"ab"], [None, (0, 2)]),
        ("", [], []),
    ],
)
def test_places(text: str, raw: list[bytes | None], expected: list[tuple[int, int] | None]) -> None:
    assert places(text, raw) == expected


def test_tokens_are_a_sequence(model: tg.LanguageModel) -> None:
    tokens = model.tokenize("the cat")
    assert [token.id for token in tokens] == list(tokens.ids)
    assert len(tokens[1:]) == len(tokens) - 1
    assert tokens == model.tokenize("the cat")
    assert tokens[0].text == tokens.pieces[0]
