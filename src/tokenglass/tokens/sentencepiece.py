"""SentencePiece `.model` files: pieces with scores, and the rules of the normaliser.

The file is one protobuf message. We read the few fields that count, without the library:

    field 1   a piece: text (1), score (2, float32), kind (3); ids are their order
    field 2   the trainer: model kind (3: 1 unigram, 2 BPE), ids of <unk> (40), BOS (41), EOS (42), pad (43)
    field 3   the normaliser: table (2), add a space before (3), remove extra spaces (4), escape them (5)

Source: https://github.com/google/sentencepiece (sentencepiece_model.proto, Apache-2.0).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tokenglass.errors import ModelFileError
from tokenglass.formats import StringArray
from tokenglass.tokens.bpe import build_sentencepiece
from tokenglass.tokens.charsmap import normaliser
from tokenglass.tokens.ends import ends_of
from tokenglass.tokens.settings import Settings
from tokenglass.tokens.unigram import build_unigram
from tokenglass.tokens.vocabulary import Encoder, Style, TokenKind, Vocabulary

UNIGRAM, BPE = 1, 2
Value = int | bytes
Fields = dict[int, Value]


def read_model(path: Path, settings: Settings) -> tuple[Vocabulary, Callable[[], Encoder]]:
    """Vocabulary and encoder of a `.model` file. ModelFileError: it is none, or of a kind we do not read."""
    pieces: list[Fields] = []
    trainer: Fields = {}
    rules: Fields = {}
    for field, value in _fields(path, path.read_bytes()):
        if field == 1:
            pieces.append(dict(_fields(path, _bytes(path, value))))
        elif field == 2:
            trainer = dict(_fields(path, _bytes(path, value)))
        elif field == 3:
            rules = dict(_fields(path, _bytes(path, value)))
    kind = trainer.get(3, UNIGRAM)
    if not pieces or kind not in (UNIGRAM, BPE):
        raise ModelFileError(path, "model", "is no SentencePiece model of kind unigram or BPE")
    scores = np.array([_float(path, piece.get(2, b"\0\0\0\0")) for piece in pieces], np.float32)
    vocabulary = _vocabulary(path, pieces, trainer, rules, settings)
    normalise = normaliser(
        path,
        _bytes(path, rules.get(2, b"")),
        add_prefix=bool(rules.get(3, 1)),
        remove_extra_spaces=bool(rules.get(4, 1)),
        escape_spaces=bool(rules.get(5, 1)),
        keep=vocabulary.user_defined,
    )
    if kind == UNIGRAM:
        return vocabulary, lambda: build_unigram(vocabulary, scores, normalise)

    def build() -> Encoder:
        encode = build_sentencepiece(path, vocabulary, _padded(scores, vocabulary), normalises=False)
        return lambda text, is_first: encode(normalise(text), is_first)

    return vocabulary, build


def _vocabulary(
    path: Path, pieces: list[Fields], trainer: Fields, rules: Fields, settings: Settings
) -> Vocabulary:
    texts = [_bytes(path, piece.get(1, b"")) for piece in pieces]
    kinds = [piece.get(3, int(TokenKind.NORMAL)) for piece in pieces]
    for token in settings.added:  # of a folder's tokenizer_config.json
        if token["id"] == len(texts) and isinstance(token.get("content"), str):
            texts.append(token["content"].encode())
            kinds.append(int(TokenKind.CONTROL if token.get("special") else TokenKind.USER_DEFINED))
    try:
        ids = {raw.decode(): token_id for token_id, raw in enumerate(texts)}
    except UnicodeDecodeError:
        raise ModelFileError(path, "pieces", "one is not UTF-8") from None
    if not all(kind in set(TokenKind) for kind in kinds):
        raise ModelFileError(path, "pieces", "one has an unknown kind")
    table = np.array(kinds, np.int8)
    control = {texts[i].decode(): i for i in np.flatnonzero(table == TokenKind.CONTROL).tolist()}
    defaults = {"unk": (40, 0), "bos": (41, 1), "eos": (42, 2), "pad": (43, -1)}
    named = {name: _id(trainer.get(field, default)) for name, (field, default) in defaults.items()}
    named |= {name: ids[text] for name, text in settings.named.items() if text in ids}
    special = {name: i if i is not None and 0 <= i < len(texts) else None for name, i in named.items()}
    end_ids, notes = ends_of({*settings.end_ids, special["eos"]}, control, len(texts))
    is_gpt = special["bos"] is not None and table[special["bos"]] == TokenKind.CONTROL
    return Vocabulary(
        StringArray.of(texts),
        table,
        Style.SENTENCEPIECE,
        bos_id=special["bos"] if is_gpt else None,
        eos_id=special["eos"],
        unknown_id=special["unk"],
        pad_id=special["pad"],
        end_ids=end_ids,
        notes=notes,
        control=control,
        user_defined={texts[i].decode(): i for i in np.flatnonzero(table == TokenKind.USER_DEFINED).tolist()},
        add_bos=bool(settings.add_bos) and is_gpt,
        add_space_prefix=bool(rules.get(3, 1)),
    )


def _padded(scores: NDArray[np.float32], vocabulary: Vocabulary) -> NDArray[np.float32]:
    return np.pad(scores, (0, vocabulary.num_tokens - len(scores)))


def _fields(path: Path, raw: bytes) -> Iterator[tuple[int, Value]]:
    """(number, value) of each field: an int, or bytes for strings, messages and float32."""
    at = 0
    while at < len(raw):
        key, at = _varint(path, raw, at)
        kind = key & 7
        if kind == 0:
            number, at = _varint(path, raw, at)
            yield key >> 3, number
            continue
        if kind == 2:
            length, at = _varint(path, raw, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ModelFileError(path, "protobuf", f"wire type {kind} is not one of this format")
        if length > len(raw) - at:
            raise ModelFileError(path, "protobuf", f"a field of {length} bytes has {len(raw) - at} left")
        yield key >> 3, raw[at : at + length]
        at += length


def _varint(path: Path, raw: bytes, at: int) -> tuple[int, int]:
    number = 0
    for i in range(10):
        if at + i >= len(raw):
            break
        number |= (raw[at + i] & 0x7F) << 7 * i
        if raw[at + i] < 0x80:
            return number, at + i + 1
    raise ModelFileError(path, "protobuf", "a number does not end")


def _id(value: Value) -> int | None:
    """An int32 as it was meant: negative ones come as 64 bits."""
    if not isinstance(value, int):
        return None
    return value - (1 << 64) if value >= 1 << 63 else value


def _float(path: Path, value: Value) -> float:
    raw = _bytes(path, value)
    if len(raw) != 4:
        raise ModelFileError(path, "pieces", "a score is no float32")
    score: float = struct.unpack("<f", raw)[0]
    return score


def _bytes(path: Path, value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise ModelFileError(path, "protobuf", "a text has another type")
    return value
