"""SentencePiece's unigram model: of all ways to cut a text into pieces, the one with the highest score.

    best[n] = the greatest of best[i] + score(text[i:n]) over all pieces that end at n

One pass from left to right (Viterbi), then back along the best cuts. Sums are float32 and begin anew at
100,000 as in the original, for ties decide. A character that is no piece costs 10 more than the worst one.
Source: https://github.com/google/sentencepiece (unigram_model.cc, Apache-2.0).
"""

from __future__ import annotations

import struct
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tokenglass.tokens.charsmap import Normaliser
from tokenglass.tokens.vocabulary import Encoder, TokenKind, Vocabulary

UNKNOWN_PENALTY = 10.0
MOST_SCORE = 100_000.0  # past it float32 is too coarse for long texts
NEVER = float("-inf")
_FLOAT = struct.Struct("<f")
Table = dict[str, tuple[int, float] | None]  # id and score; None: no piece, but the beginning of one
_NOTHING = (-1, 0.0)


def build_unigram(vocabulary: Vocabulary, scores: NDArray[np.float32], normalise: Normaliser) -> Encoder:
    """The encoder. scores: float32 [num_tokens]. Unknown text goes by bytes where those are tokens."""
    scores = np.clip(np.nan_to_num(scores), -1e9, 1e9)  # a hostile file's: sums stay finite
    kinds = vocabulary.kinds[: len(scores)]
    normal = scores[kinds == TokenKind.NORMAL]
    lowest, highest = (float(normal.min()), float(normal.max())) if normal.size else (0.0, 0.0)
    unknown = _rounded(lowest - UNKNOWN_PENALTY)
    table: Table = {}
    for token_id, raw in enumerate(vocabulary.tokens.to_list()[: len(scores)]):
        is_own = kinds[token_id] == TokenKind.USER_DEFINED
        if (kinds[token_id] == TokenKind.NORMAL or is_own) and raw:
            text = raw.decode()
            table[text] = token_id, _rounded(len(raw) * highest) - 0.1 if is_own else float(scores[token_id])
            for end in range(1, len(text)):
                table.setdefault(text[:end], None)
    is_byte = kinds == TokenKind.BYTE
    bytes_ = {int(vocabulary.token_bytes(i)[0]): i for i in np.flatnonzero(is_byte).tolist()}

    def encode(text: str, is_first: bool) -> list[int]:
        text = normalise(text)
        return _ids(text, _cut(text, table, unknown), bytes_, vocabulary.unknown_id)

    return encode


def _cut(text: str, table: Table, unknown: float) -> list[tuple[int, int | None]]:
    """(end, id) of each piece in order; no id: one unknown character."""
    num = len(text)
    best = [0.0] + [NEVER] * num
    came: list[tuple[int, int | None]] = [(0, None)] * (num + 1)  # where the best piece that ends here begins
    furthest = 0
    for start in range(num):
        here = best[start]
        if abs(here) > MOST_SCORE:
            best[start : furthest + 1] = [_rounded(score - here) for score in best[start : furthest + 1]]
            here = 0.0
        has_single = False
        for end in range(start + 1, num + 1):
            entry = table.get(text[start:end], _NOTHING)
            if entry is _NOTHING:
                break
            if entry is not None:
                token_id, score = entry
                furthest = max(furthest, end)
                total = _rounded(here + score)
                if total > best[end]:
                    best[end], came[end] = total, (start, token_id)
                has_single = has_single or end == start + 1
        if not has_single and (total := _rounded(here + unknown)) > best[start + 1]:
            best[start + 1], came[start + 1] = total, (start, None)
    pieces: list[tuple[int, int | None]] = []
    end = num
    while end > 0:
        begin, piece_id = came[end]
        pieces.append((end, piece_id))
        end = begin
    return pieces[::-1]


def _ids(
    text: str, pieces: list[tuple[int, int | None]], bytes_: dict[int, int], unknown_id: int | None
) -> list[int]:
    """Ids of the pieces; unknown characters as bytes, or one <unk> for a run of them."""
    ids: list[int] = []
    for (start, before), (end, token_id) in pairwise([(0, 0), *pieces]):
        if token_id is not None:
            ids.append(token_id)
        elif bytes_:
            ids += [bytes_[byte] for byte in text[start:end].encode() if byte in bytes_]
        elif before is not None and unknown_id is not None:
            ids.append(unknown_id)
    return ids


def _rounded(value: float) -> float:
    """As a float32: a sum of two, rounded, is their float32 sum."""
    return _FLOAT.unpack(_FLOAT.pack(value))[0]  # type: ignore[no-any-return]  # twice as fast as numpy's
