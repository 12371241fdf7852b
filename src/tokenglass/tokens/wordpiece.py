"""BERT's WordPiece: `vocab.txt` as the tokenizer.json it stands for, and how words are put together again.

    "今天 Running"  ->  今 | 天 | run | ##ning  ->  "今天running"

Words are cut at spaces, punctuation and around every Chinese character; then the longest piece of the
vocabulary is taken again and again, "##" marking those that continue a word. What has no pieces is [UNK].
So the text cannot be got back: case, accents, spaces and unknown words are lost. We put words together as
text is written: no space beside Chinese, none before a comma.
Source: https://github.com/google-research/bert/blob/master/tokenization.py (Apache-2.0), as in `tokenizers`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tokenglass.tokens.word_marks import CONTINUES

MAX_WORD_CHARS = 100  # a longer word is [UNK]; 200 in BERT's first code, 100 in every Hugging Face model
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_DENSE = "\u2e80-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\U00020000-\U0003ffff"  # kana, ideographs
_NO_SPACE_BEFORE = re.compile(rf"[{_DENSE}.,!?;:)\]}}%'’”…]")
_NO_SPACE_AFTER = re.compile(rf"[{_DENSE}(\[{{$#@'‘“/-]$")


def is_apart(left: str, right: str) -> bool:
    """Whether a space stands between two words: `is_apart("hello", "world")`, not `is_apart("你", "好")`."""
    return bool(left and right) and not _NO_SPACE_AFTER.search(left) and not _NO_SPACE_BEFORE.match(right)


def wordpiece_spec(
    tokens: Sequence[str],
    *,
    lower_case: bool = True,
    strip_accents: bool | None = None,
    split_chinese: bool = True,
    special: Sequence[str] = SPECIAL,
) -> dict[str, Any]:
    """The tokenizer.json of a `vocab.txt`. Of equal lines the last counts, as in BERT.

    strip_accents None: as `lower_case`, which is BERT's rule.
    """
    ids = {text: token_id for token_id, text in enumerate(tokens)}
    return {
        "added_tokens": [
            {"id": ids[text], "content": text, "special": True} for text in special if text in ids
        ],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": split_chinese,
            "strip_accents": strip_accents,
            "lowercase": lower_case,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece"},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": CONTINUES,
            "max_input_chars_per_word": MAX_WORD_CHARS,
            "vocab": ids,
        },
    }


def is_cased(tokens: Sequence[str]) -> bool:
    """Whether a vocabulary keeps capitals, where nothing says so: it has words with some."""
    return any(re.search("[A-Z]", text) for text in tokens if not text.startswith("["))
