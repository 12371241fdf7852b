"""A byte-pair vocabulary as an object of Hugging Face's `tokenizers`: what `export.py` writes down.

Our own encoders (`bpe.py`) give the same ids without it: for Gemma's vocabulary it takes seconds and 200 MB.
Control tokens are not in it. The order of SentencePiece merges follows Transformers (`generate_merges` in
tokenization_utils_base.py, Apache-2.0).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tokenglass.errors import ModelFileError
from tokenglass.formats import StringArray
from tokenglass.tokens.bpe import cuts_of
from tokenglass.tokens.pretokenizers import PreTokenizer
from tokenglass.tokens.vocabulary import TokenKind, Vocabulary
from tokenglass.tokens.word_marks import SPACE_MARK

if TYPE_CHECKING:
    import tokenizers


def byte_level_object(
    path: Path, vocabulary: Vocabulary, merges: StringArray, pre_tokenizer: PreTokenizer
) -> tokenizers.Tokenizer:
    """GPT-2 style BPE. ModelFileError: a merge that is not two tokens of the vocabulary."""
    import tokenizers
    from tokenizers import normalizers

    pairs = [tuple(merge.split(" ")) for merge in _decoded(path, "merges", merges)]
    model = _bpe(path, vocabulary, _ids(vocabulary), pairs, ignore_merges=pre_tokenizer.ignore_merges)
    tokenizer = tokenizers.Tokenizer(model)
    if pre_tokenizer.nfc:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = cuts_of(pre_tokenizer)
    return _with_user_defined(tokenizer, vocabulary)


def sentencepiece_object(
    path: Path, vocabulary: Vocabulary, scores: NDArray[np.float32]
) -> tokenizers.Tokenizer:
    """SentencePiece BPE. ModelFileError: the scores do not fit the tokens."""
    import tokenizers
    from tokenizers import normalizers

    if scores.shape != (vocabulary.num_tokens,):
        raise ModelFileError(
            path, "tokenizer.ggml.scores", f"has {scores.size} entries for {vocabulary.num_tokens} tokens"
        )
    ids = _ids(vocabulary)
    unknown = None if vocabulary.unknown_id is None else vocabulary.token_text(vocabulary.unknown_id)
    is_reachable = np.isin(vocabulary.kinds, (TokenKind.NORMAL, TokenKind.USER_DEFINED)).tolist()
    reachable = {text for text, i in ids.items() if is_reachable[i]}
    pairs = _pairs_by_score(ids, reachable, scores)
    tokenizer = tokenizers.Tokenizer(
        _bpe(path, vocabulary, ids, pairs, unk_token=unknown, fuse_unk=True, byte_fallback=True)
    )
    spaces = [normalizers.Replace(" ", SPACE_MARK)]
    prefix = [normalizers.Prepend(SPACE_MARK)] if vocabulary.add_space_prefix else []
    tokenizer.normalizer = normalizers.Sequence([*prefix, *spaces])
    return _with_user_defined(tokenizer, vocabulary)


def _ids(vocabulary: Vocabulary) -> dict[str, int]:
    """Text -> id of all tokens but the control tokens; of equal texts the last counts."""
    ids = {raw.decode(): token_id for token_id, raw in enumerate(vocabulary.tokens)}
    for text in vocabulary.control:
        del ids[text]
    return ids


def _decoded(path: Path, key: str, strings: StringArray) -> list[str]:
    try:
        return [raw.decode() for raw in strings]
    except UnicodeDecodeError:
        raise ModelFileError(path, f"tokenizer.ggml.{key}", "is not valid UTF-8") from None


def _bpe(
    path: Path, vocabulary: Vocabulary, ids: dict[str, int], pairs: list[tuple[str, ...]], **options: object
) -> tokenizers.models.BPE:
    """The model, without merges into control tokens: the library refuses those, and only then we look."""
    from tokenizers import models

    try:
        return models.BPE(vocab=ids, merges=pairs, **options)  # type: ignore[arg-type]
    except Exception as error:  # noqa: BLE001 (the library raises nothing narrower)
        kept = [pair for pair in pairs if "".join(pair) not in vocabulary.control]
        if len(kept) < len(pairs):
            return _bpe(path, vocabulary, ids, kept, **options)
        wrong = next((i for i, pair in enumerate(pairs) if len(pair) != 2), None)
        problem = f"do not fit the tokens: {error}" if wrong is None else f"merge {wrong} is not two tokens"
        raise ModelFileError(path, "tokenizer.ggml.merges", problem) from None


def _pairs_by_score(
    ids: dict[str, int], wanted: set[str], scores: NDArray[np.float32]
) -> list[tuple[str, ...]]:
    """Every way to make a `wanted` token of two others, best score first."""
    found: list[tuple[float, str, str]] = []
    values = scores.tolist()
    for text, token_id in ids.items():
        if text in wanted:
            splits = [
                (text[:i], text[i:]) for i in range(1, len(text)) if text[:i] in ids and text[i:] in ids
            ]
            splits.sort(key=lambda pair: (ids[pair[0]], ids[pair[1]]))
            found.extend((values[token_id], *pair) for pair in splits)
    found.sort(key=lambda entry: (entry[0], len(entry[1]), len(entry[2])), reverse=True)
    return [entry[1:] for entry in found]


def _with_user_defined(tokenizer: tokenizers.Tokenizer, vocabulary: Vocabulary) -> tokenizers.Tokenizer:
    """Let user-defined tokens be cut out of the raw text first, as Hugging Face does with added tokens."""
    from tokenizers import AddedToken

    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in vocabulary.user_defined if text])
    return tokenizer
