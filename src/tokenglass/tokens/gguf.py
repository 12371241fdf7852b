"""The encoder of a GGUF file's vocabulary: merges, scores or words, by `tokenizer.ggml.model`.

gpt2    byte-level BPE, words cut by `tokenizer.ggml.pre`      bpe.py, pretokenizers.py
llama   SentencePiece BPE with scores                          bpe.py
t5      SentencePiece unigram with scores                      unigram.py
bert    WordPiece                                              wordpiece.py
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from tokenglass.errors import ModelFileError
from tokenglass.formats import ModelSource, StringArray
from tokenglass.tokens.bpe import build_byte_level, build_sentencepiece
from tokenglass.tokens.charsmap import normaliser
from tokenglass.tokens.pretokenizers import PRE_TOKENIZERS, PreTokenizer
from tokenglass.tokens.tokenizer_json import check_spec, encoder_of
from tokenglass.tokens.unigram import build_unigram
from tokenglass.tokens.vocabulary import Encoder, Style, Vocabulary
from tokenglass.tokens.wordpiece import is_cased, wordpiece_spec

LOWER_CASE = "tokenizer.ggml.normalizer.lowercase"


def build_encoder(gguf: ModelSource, vocabulary: Vocabulary) -> Callable[[], Encoder]:
    """What makes the encoder when it is first needed. ModelFileError: a key is missing or wrong."""
    path = gguf.path
    if vocabulary.style is Style.WORDPIECE:
        lower_case = lowers_case(gguf, vocabulary)
        return lambda: _wordpiece(path, vocabulary, lower_case)
    if vocabulary.style is Style.SENTENCEPIECE:
        scores = gguf.get("tokenizer.ggml.scores", np.float32)
        if gguf.get("tokenizer.ggml.model", str) == "t5":
            if scores.shape != (vocabulary.num_tokens,):
                problem = f"has {scores.size} entries for {vocabulary.num_tokens} tokens"
                raise ModelFileError(path, "tokenizer.ggml.scores", problem)
            table = gguf.metadata.get("tokenizer.ggml.precompiled_charsmap")
            normalise = normaliser(
                path,
                table.tobytes() if isinstance(table, np.ndarray) else b"",
                add_prefix=vocabulary.add_space_prefix,
                remove_extra_spaces=gguf.get("tokenizer.ggml.remove_extra_whitespaces", bool, False),
                keep=vocabulary.user_defined,
            )
            return lambda: build_unigram(vocabulary, scores, normalise)
        return lambda: build_sentencepiece(path, vocabulary, scores)
    merges, pre_tokenizer = gguf.get("tokenizer.ggml.merges", StringArray), pre_tokenizer_of(gguf)
    return lambda: build_byte_level(path, vocabulary, merges, pre_tokenizer)


def pre_tokenizer_of(gguf: ModelSource) -> PreTokenizer:
    """How the file cuts a text into words. ModelFileError: it names a way that we do not know."""
    name = gguf.get("tokenizer.ggml.pre", str, "default")
    pre_tokenizer = PRE_TOKENIZERS.get(name)
    if pre_tokenizer is None:
        raise ModelFileError(
            gguf.path,
            "tokenizer.ggml.pre",
            f"the pre-tokenizer {name!r} is not known",
            remedy=f"Known are: {', '.join(sorted(PRE_TOKENIZERS))}",
        )
    return pre_tokenizer


def lowers_case(gguf: ModelSource, vocabulary: Vocabulary) -> bool:
    """Whether WordPiece makes capitals small. Files of before 2026 do not say it; there its words do."""
    said = gguf.get(LOWER_CASE, bool, None)
    return not is_cased([raw.decode() for raw in vocabulary.tokens]) if said is None else said


def _wordpiece(path: Path, vocabulary: Vocabulary, lower_case: bool) -> Encoder:
    spec = wordpiece_spec([raw.decode() for raw in vocabulary.tokens], lower_case=lower_case)
    check_spec(path, spec)
    return encoder_of(path, spec, vocabulary.control)
