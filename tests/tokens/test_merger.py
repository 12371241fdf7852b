"""Our merging against Hugging Face's `tokenizers`, on drawn vocabularies: equal ids, whatever the order."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from tokenizers import Tokenizer as Oracle
from tokenizers.models import BPE

from tokenglass.formats import StringArray
from tokenglass.kernels import Merger
from tokenglass.tokens import TokenKind

LETTERS = ["a", "b", "c", "▁", "é", "你"]


def drawn_tokens(draw: random.Random) -> list[str]:
    """The letters, and joins of what is there already."""
    tokens = list(LETTERS)
    while len(tokens) < 40:
        joined = draw.choice(tokens) + draw.choice(tokens)
        tokens += [joined] if joined not in tokens and len(joined) < 9 else []
    return tokens


def splits(token: str, tokens: Sequence[str]) -> list[tuple[str, str]]:
    pairs = [(token[:i], token[i:]) for i in range(1, len(token))]
    return [pair for pair in pairs if set(pair) <= set(tokens)]


def merger_of(tokens: Sequence[str], kinds: Sequence[int] | None = None) -> Merger:
    strings = StringArray.of([token.encode() for token in tokens])
    return Merger(strings.blob, strings.offsets, np.array(kinds or [TokenKind.NORMAL] * len(tokens), np.int8))


def words(draw: random.Random, letters: Sequence[str]) -> list[str]:
    return ["".join(draw.choices(letters, k=draw.randint(1, 30))) for _ in range(30)]


def check(merger: Merger, model: BPE, texts: Sequence[str], *, whole: bool = False) -> None:
    oracle = Oracle(model)
    for text in texts:
        assert merger.encode([text], whole) == oracle.encode(text).ids, text


@pytest.mark.parametrize("seed", range(60))
def test_listed_merges_are_applied_as_in_tokenizers(seed: int) -> None:
    draw = random.Random(seed)
    tokens = drawn_tokens(draw)
    pairs = [pair for token in tokens for pair in splits(token, tokens) if draw.random() < 0.7]
    draw.shuffle(pairs)
    merger = merger_of(tokens)
    merges = StringArray.of([" ".join(pair).encode() for pair in pairs])
    assert merger.set_merges(merges.blob, merges.offsets) == -1
    vocab = {token: i for i, token in enumerate(tokens)}
    for whole in (False, True):
        texts = [*words(draw, [*LETTERS, "x"]), *tokens]
        check(merger, BPE(vocab, pairs, ignore_merges=whole), texts, whole=whole)


@pytest.mark.parametrize("seed", range(60))
def test_scores_merge_in_the_order_that_transformers_gives_them(seed: int) -> None:
    draw = random.Random(seed)
    tokens = [
        "<unk>",
        *(f"<0x{byte:02X}>" for byte in range(256) if seed % 2 or byte % 3),
        *drawn_tokens(draw),
    ]
    scores = np.array([draw.choice((-1.0, -2.0, -3.5, -9.0)) for _ in tokens], np.float32)
    found = [
        (float(score), *pair)
        for token, score in zip(tokens, scores, strict=True)
        for pair in splits(token, tokens)
    ]
    found.sort(key=lambda entry: (entry[0], len(entry[1]), len(entry[2])), reverse=True)
    merger = merger_of(tokens)
    merger.set_places(np.unique(-scores, return_inverse=True)[1].astype(np.int32), 0)
    vocab = {token: i for i, token in enumerate(tokens)}
    pairs = [entry[1:] for entry in found]
    model = BPE(vocab, pairs, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    check(merger, model, words(draw, [*LETTERS, "x", "好", "😊"]))


def test_a_million_characters_are_merged_in_one_piece() -> None:
    tokens = [*LETTERS, "aa", "aaaa", "ab"]
    merger = merger_of(tokens)
    merger.set_places(np.arange(len(tokens), dtype=np.int32), -1)
    assert merger.encode(["a" * (1 << 20)]) == [tokens.index("aaaa")] * (1 << 18)


@pytest.mark.parametrize("merge", ["a", "a b c", "a zz", "zz a", "a c", "", " "])
def test_the_first_bad_merge_is_named(merge: str) -> None:
    merger = merger_of([*LETTERS, "ab", "bc"], [TokenKind.NORMAL] * 7 + [TokenKind.CONTROL])
    merges = StringArray.of([b"a b", b"b c", merge.encode()])
    assert merger.set_merges(merges.blob, merges.offsets) == 2
    assert merger.encode(["abbc"])[1:] == [1, 2]  # "bc" is a control token, which no text gives


def test_arrays_that_do_not_fit_are_refused() -> None:
    strings, kinds = StringArray.of([b"a", b"b"]), np.ones(2, np.int8)
    for offsets in ([0, 9, 99], [0, 3, 18], [-9, 0, 9], [0, 9, 5], []):
        with pytest.raises(ValueError, match=r"offsets|kinds"):
            Merger(strings.blob, np.array(offsets, np.int64), kinds[: max(0, len(offsets) - 1)])
    with pytest.raises(ValueError, match="kinds"):
        Merger(strings.blob, strings.offsets, kinds[:1])
    merger = Merger(strings.blob, strings.offsets, kinds)
    for places, unknown in (([0], -1), ([0, 1], 2), ([0, 1], -2), ([0, -1], 0), ([0, 1 << 22], 0)):
        with pytest.raises(ValueError, match=r"place|unknown_id"):
            merger.set_places(np.array(places, np.int32), unknown)
