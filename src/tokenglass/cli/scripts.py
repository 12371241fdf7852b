"""Notices a prompt that the model can hardly answer or does not see as it was written, before it answers.

A vocabulary made without Chinese text spells most Chinese characters in several tokens, and a model that met
so little of it writes nonsense. So the measure is the tokenizer's own: tokens for each Chinese character.
WordPiece (BERT, the Chinese GPT-2) loses text; what is lost shows when the ids are put together again.
"""

from __future__ import annotations

import re

from tokenglass.cli.columns import clip, quoted
from tokenglass.cli.language import t
from tokenglass.tokens import Tokenizer
from tokenglass.tokens.vocabulary import Style

HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]+")
MAX_TOKENS_PER_HAN = 1.2  # Qwen2.5 has 0.6, SmolLM2 1.6
MIN_HAN = 4  # a name or a single word says nothing
SAMPLE_CHARS = 2000
SEEN_COLUMNS = 60  # of what the model reads
# Only what works may be named here: a test looks the name up.
INSTEAD = "qwen2.5-0.5b-instruct was trained on it (tokenglass models pull qwen2.5-0.5b-instruct)"


def script_hint(tokenizer: Tokenizer, text: str) -> str | None:
    """One line for stderr when `text` is in a script this model can hardly write; None when all is well."""
    han = "".join(HAN.findall(text[: 4 * SAMPLE_CHARS]))[:SAMPLE_CHARS]
    if len(han) < MIN_HAN:
        return None
    tokens_per_char = len(tokenizer.encode(han, bos=False)) / len(han)
    if tokens_per_char <= MAX_TOKENS_PER_HAN:
        return None
    return t(
        "this model needs {n:.1f} tokens for each Chinese character and can hardly write Chinese: {instead}",
        n=tokens_per_char,
        instead=t(INSTEAD),
    )


def loss_hint(tokenizer: Tokenizer, text: str) -> str | None:
    """One line for stderr when a WordPiece vocabulary loses something of `text`: what is left of it."""
    if tokenizer.vocabulary.style is not Style.WORDPIECE:
        return None
    seen = tokenizer.decode(tokenizer.encode(text))
    if seen == text:
        return None
    return t(
        "WordPiece loses capitals, accents, spaces and unknown words ([UNK]); the model reads {seen}",
        seen=quoted(clip(seen, SEEN_COLUMNS).encode()),
    )
