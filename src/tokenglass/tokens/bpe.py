"""Builds the Hugging Face `tokenizers` object for a vocabulary: merges, cuts, user-defined tokens.

Control tokens are not in it, so no text and no merge can give one: `tokenizer.py` cuts them out beforehand.
Only encoding needs this; importing and building take about 0.1 s, so they wait for the first text.
Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. The order of SentencePiece merges follows
Transformers (`generate_merges` in tokenization_utils_base.py, Apache-2.0).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tokenglass.errors import ModelFileError
from tokenglass.formats import StringArray
from tokenglass.tokens.pretokenizers import DIGITS, GPT2_WORDS, PreTokenizer
from tokenglass.tokens.vocabulary import Encoder, TokenKind, Vocabulary
from tokenglass.tokens.word_marks import SPACE_MARK

if TYPE_CHECKING:
    import tokenizers


def encoder(tokenizer: tokenizers.Tokenizer) -> Encoder:
    """Its ids for a text, wherever the text stands."""
    return lambda text, is_first: tokenizer.encode(text, add_special_tokens=False).ids


def build_byte_level(
    path: Path, vocabulary: Vocabulary, merges: StringArray, pre_tokenizer: PreTokenizer
) -> tokenizers.Tokenizer:
    """GPT-2 style BPE. ModelFileError: a merge that is not two tokens of the vocabulary.

    Measured for SmolLM2 (49,152 tokens, 48,900 merges), median of 3: dict and pairs 22 ms and `BPE(...)`
    55 ms, against 34 ms for writing JSON and 113 ms for `Tokenizer.from_str` or 104 ms for `from_buffer`.
    """
    import tokenizers
    from tokenizers import normalizers

    pairs = [tuple(merge.split(" ")) for merge in _decoded(path, "merges", merges)]
    model = _bpe(path, vocabulary, _ids(vocabulary), pairs, ignore_merges=pre_tokenizer.ignore_merges)
    tokenizer = tokenizers.Tokenizer(model)
    if pre_tokenizer.nfc:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = _cuts(pre_tokenizer)
    return _with_user_defined(tokenizer, vocabulary)


def build_sentencepiece(
    path: Path, vocabulary: Vocabulary, scores: NDArray[np.float32], *, normalises: bool = True
) -> tokenizers.Tokenizer:
    """SentencePiece BPE: the best scored joined token merges first; unknown text goes by bytes.

    normalises: it puts the marks for spaces itself.

    ModelFileError: the scores do not fit the tokens.
    """
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
    if normalises:
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


def _cuts(pre_tokenizer: PreTokenizer) -> tokenizers.pre_tokenizers.PreTokenizer:
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split

    *rules, last = pre_tokenizer.rules
    if last != GPT2_WORDS:
        rules.append(last)
    steps = [
        Digits(individual_digits=True) if rule == DIGITS else Split(Regex(rule), "isolated") for rule in rules
    ]
    return Sequence([*steps, ByteLevel(add_prefix_space=False, use_regex=last == GPT2_WORDS)])


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
