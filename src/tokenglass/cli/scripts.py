"""Notices a prompt in a script that the model can hardly write, before the answer shows it.

A vocabulary made without Chinese text spells most Chinese characters in several tokens, and a model that met
so little of it writes nonsense. So the measure is the tokenizer's own: tokens for each Chinese character.
"""

from __future__ import annotations

import re

from tokenglass.cli.language import t
from tokenglass.tokens import Tokenizer

HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]+")
MAX_TOKENS_PER_HAN = 1.2  # Qwen2.5 has 0.6, SmolLM2 1.6
MIN_HAN = 4  # a name or a single word says nothing
SAMPLE_CHARS = 2000
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
