"""Encoders of byte-pair vocabularies: user-defined tokens cut out, words cut, neighbours merged.

The merging is ours (`csrc/merger.h`): it needs the vocabulary as it lies in the file and no object for each
token. What comes before, Unicode and regular expressions, is Hugging Face's `tokenizers`, in their order.
Control tokens are not in it, so no text and no merge can give one: `tokenizer.py` cuts them out beforehand.
Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. The order of SentencePiece merges is that
of Transformers (`generate_merges` in tokenization_utils_base.py, Apache-2.0).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tokenglass.errors import ModelFileError
from tokenglass.formats import StringArray
from tokenglass.kernels import Merger
from tokenglass.tokens.pretokenizers import DIGITS, GPT2_WORDS, PreTokenizer
from tokenglass.tokens.vocabulary import Encoder, Vocabulary
from tokenglass.tokens.word_marks import SPACE_MARK

if TYPE_CHECKING:
    import tokenizers


def build_byte_level(
    path: Path, vocabulary: Vocabulary, merges: StringArray, pre_tokenizer: PreTokenizer
) -> Encoder:
    """GPT-2 style BPE. ModelFileError: a merge that is not two tokens of the vocabulary."""
    merger = _merger(vocabulary)
    wrong = merger.set_merges(merges.blob, merges.offsets)
    if wrong >= 0:
        problem = f"merge {wrong} is not two tokens of the vocabulary: {merges[wrong][:64]!r}"
        raise ModelFileError(path, "tokenizer.ggml.merges", problem)
    return _around_user_defined(vocabulary, _by_words(merger, pre_tokenizer))


def build_by_rank(vocabulary: Vocabulary, pre_tokenizer: PreTokenizer) -> Encoder:
    """tiktoken's BPE: of all neighbours those merge first whose joined token has the lowest id."""
    merger = _merger(vocabulary)
    merger.set_places(np.arange(vocabulary.num_tokens, dtype=np.int32), -1)
    return _around_user_defined(vocabulary, _by_words(merger, pre_tokenizer))


def _by_words(merger: Merger, pre_tokenizer: PreTokenizer) -> Callable[[str], list[int]]:
    from tokenizers.normalizers import NFC

    cuts, nfc, whole = cuts_of(pre_tokenizer), NFC(), pre_tokenizer.ignore_merges

    def encode(text: str) -> list[int]:
        text = nfc.normalize_str(text) if pre_tokenizer.nfc else text
        return merger.encode([word for word, _ in cuts.pre_tokenize_str(text)], whole)

    return encode


def build_sentencepiece(
    path: Path, vocabulary: Vocabulary, scores: NDArray[np.float32], *, normalises: bool = True
) -> Encoder:
    """SentencePiece BPE: the best scored joined token merges first; unknown text goes by bytes.

    normalises: it puts the marks for spaces itself.

    ModelFileError: the scores do not fit the tokens.
    """
    if scores.shape != (vocabulary.num_tokens,):
        raise ModelFileError(
            path, "tokenizer.ggml.scores", f"has {scores.size} entries for {vocabulary.num_tokens} tokens"
        )
    merger = _merger(vocabulary)
    places = np.unique(-scores, return_inverse=True)[1].astype(np.int32)  # equal scores share one
    merger.set_places(places, -1 if vocabulary.unknown_id is None else vocabulary.unknown_id)
    prefix = SPACE_MARK if vocabulary.add_space_prefix else ""

    def encode(text: str) -> list[int]:
        return merger.encode([prefix + text.replace(" ", SPACE_MARK) if normalises else text])

    return _around_user_defined(vocabulary, encode)


def _merger(vocabulary: Vocabulary) -> Merger:
    tokens = vocabulary.tokens
    return Merger(tokens.blob, tokens.offsets, vocabulary.kinds)


def _around_user_defined(vocabulary: Vocabulary, encode: Callable[[str], list[int]]) -> Encoder:
    """Cuts user-defined tokens out of the raw text first, as Hugging Face does with added tokens."""
    from tokenizers import AddedToken, Tokenizer, models

    ids = {text: token_id for text, token_id in vocabulary.user_defined.items() if text}
    if not ids:
        return lambda text, is_first: encode(text)
    cutter = Tokenizer(models.BPE())  # an empty model: what it finds are the added tokens
    cutter.add_tokens([AddedToken(text, normalized=False) for text in ids])

    def encode_parts(text: str, is_first: bool) -> list[int]:
        found, at, result = cutter.encode(text, add_special_tokens=False), 0, list[int]()
        for token, (start, end) in zip(found.tokens, found.offsets, strict=True):
            result += encode(text[at:start]) if start > at else []
            result.append(ids[token])
            at = end
        return result + (encode(text[at:]) if at < len(text) else [])

    return encode_parts


def cuts_of(pre_tokenizer: PreTokenizer) -> tokenizers.pre_tokenizers.PreTokenizer:
    """The rules as an object of the library; its words are in letters for bytes."""
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split

    *rules, last = pre_tokenizer.rules
    if last != GPT2_WORDS:
        rules.append(last)
    steps = [
        Digits(individual_digits=True) if rule == DIGITS else Split(Regex(rule), "isolated") for rule in rules
    ]
    return Sequence([*steps, ByteLevel(add_prefix_space=False, use_regex=last == GPT2_WORDS)])
