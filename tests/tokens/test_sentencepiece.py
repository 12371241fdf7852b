"""SentencePiece models written byte by byte, against all ways to cut a text; real ones: test_originals.py."""

from __future__ import annotations

import struct
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tokens.vocabularies import sentencepiece_metadata, tokenizer_of
from tokenglass.errors import ModelFileError
from tokenglass.tokens import Tokenizer, TokenKind

PIECES = [
    ("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3), ("▁", -2.0, 1), ("a", -2.5, 1), ("b", -3.25, 1),
    ("ab", -4.5, 1), ("▁a", -4.0, 1), ("ba", -5.5, 1), ("aba", -7.0, 1), ("<x>", 0.0, 4), ("你", -6.0, 1),
]  # fmt: skip


def varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def field(number: int, value: int | bytes | float) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def model_bytes(kind: int = 1, rules: bytes = b"") -> bytes:
    pieces = [
        field(1, field(1, text.encode()) + field(2, score) + field(3, kind_)) for text, score, kind_ in PIECES
    ]
    return b"".join(pieces) + field(2, field(3, kind)) + field(3, rules)


def made(folder: Path, raw: bytes) -> Path:
    path = folder / "spiece.model"
    path.write_bytes(raw)
    return path


@pytest.fixture(scope="module")
def unigram(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return Tokenizer.from_path(made(tmp_path_factory.mktemp("u"), model_bytes()))


def best(text: str) -> float:
    """The highest score of any way to cut the text."""
    known = {piece: score for piece, score, kind in PIECES if kind == 1}
    scores = []
    for cuts in product((False, True), repeat=len(text) - 1):
        parts = "".join(char + "\0" * cut for char, cut in zip(text, (*cuts, False), strict=True)).split("\0")
        if all(part in known or len(part) == 1 for part in parts):
            scores.append(sum(known.get(part, -17.0) for part in parts))
    return max(scores)


@settings(deadline=None)
@given(st.text("abc 你", max_size=9))
def test_no_way_to_cut_scores_higher(unigram: Tokenizer, text: str) -> None:
    ids = unigram.encode(text)
    normal = " ".join(text.split(" ")).strip(" ")
    while "  " in normal:
        normal = normal.replace("  ", " ")
    if not normal:
        assert ids == []
        return
    marked = "▁" + normal.replace(" ", "▁")
    unknown = sum(char == "c" for char in marked)
    score = sum(PIECES[i][1] for i in ids) - 17.0 * unknown
    assert score == pytest.approx(best(marked))
    assert unigram.decode([i for i in ids if i]) == normal.replace("c", "")


def test_users_own_pieces_are_always_taken_and_control_pieces_never(unigram: Tokenizer) -> None:
    assert unigram.encode("a<x>b") == [7, 10, 5]
    assert not any(unigram.vocabulary.is_control(i) for i in unigram.encode("<s>a</s>"))
    assert unigram.vocabulary.end_ids == {2}


def test_spaces_are_kept_where_the_rules_say_so(tmp_path: Path) -> None:
    rules = field(3, 0) + field(4, 0)
    tokenizer = Tokenizer.from_path(made(tmp_path, model_bytes(rules=rules)))
    assert tokenizer.decode(tokenizer.encode("  a  b ")) == "  a  b "


def test_bpe_models_join_by_score(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_path(made(tmp_path, model_bytes(kind=2)))
    assert [tokenizer.vocabulary.token_text(i) for i in tokenizer.encode("aba")] == ["▁a", "ba"]


def test_a_table_replaces_the_longest_entry(tmp_path: Path) -> None:
    """A double array for "c" -> "a" and "cc" -> "b", by hand: base of the root 256."""
    units = [0] * 1024
    units[0] = 256 << 10
    at = 256 ^ ord("c")
    units[at] = ord("c") | 1 << 8 | (512 ^ at) << 10  # its children begin at 512
    units[512] = 1 << 31 | 0  # the replacement at 0
    second = 512 ^ ord("c")
    units[second] = ord("c") | 1 << 8 | (768 ^ second) << 10
    units[768] = 1 << 31 | 2
    table = struct.pack("<I1024I", 4096, *units) + b"a\0b\0"
    tokenizer = Tokenizer.from_path(made(tmp_path, model_bytes(rules=field(2, table))))
    assert tokenizer.decode(tokenizer.encode("ccc cab")) == "ba aab"


@pytest.mark.parametrize("size", [0, 3, 4096, 0xFFFFFFFC])
def test_a_table_longer_than_the_file_is_refused(tmp_path: Path, size: int) -> None:
    rules = field(2, struct.pack("<II", size, 0))
    with pytest.raises(ModelFileError, match="precompiled_charsmap"):
        Tokenizer.from_path(made(tmp_path, model_bytes(rules=rules)))


def test_every_cut_and_many_broken_bytes_are_refused_or_read(tmp_path: Path) -> None:
    raw = model_bytes(rules=field(2, struct.pack("<II", 4, 7 << 10) + b"a\0"))
    broken = [raw[:end] for end in range(len(raw))]
    broken += [raw[:i] + bytes([raw[i] ^ 0x81]) + raw[i + 1 :] for i in range(len(raw))]
    for content in broken:
        path = made(tmp_path, content)
        try:
            Tokenizer.from_path(path).encode("ab c 你 <x>")
        except ModelFileError:
            continue


def test_gguf_unigram_vocabularies_are_read(tmp_path: Path) -> None:
    metadata = sentencepiece_metadata()
    for key in ("tokens", "token_type", "scores"):
        del metadata[f"tokenizer.ggml.{key}"]
    changes = {
        "model": "t5",
        "tokens": [text for text, _, _ in PIECES],
        "token_type": [kind for _, _, kind in PIECES],
        "scores": np.array([score for _, score, _ in PIECES], np.float32),
        "remove_extra_whitespaces": True,
        "unknown_token_id": 0,
    }
    tokenizer = tokenizer_of(tmp_path, metadata, **changes)
    assert tokenizer.encode("a<x>b", bos=False) == [7, 10, 5]
    assert tokenizer.vocabulary.kind(0) is TokenKind.UNKNOWN
    with pytest.raises(ModelFileError, match="scores: has 3 entries"):
        tokenizer_of(tmp_path, metadata, **{**changes, "scores": np.zeros(3, np.float32)})
