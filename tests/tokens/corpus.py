"""2,000 mixed lines, the same on every machine, to compare tokenizers with: hard cases, not typical prose.

`python -m tests.tokens.corpus` prints them. Randomness is `random.Random(seed).random()` only, which Python
keeps stable between versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split())


WORDS = _split(
    "the of and to in is that it's don't we'll I'VE they'RE Hello WORLD naïve café Straße ﬁn ǅungla İstanbul "
    "tokenizer next-token probability e.g. U.S.A. snake_case camelCase HTTPServer 3rd 1st 10th x86_64 v2.0.1 "
    "https://example.org/a?b=c&d=%20#e user@example.com C:\\Temp\\x $100 50% #tag @name a/b c+d=e ~/.config"
)
CHINESE = _split(
    "的 一 是 不 了 人 我 在 有 他 大语言模型 下一个词元 人工智能 你好，世界！ 「引用」 《书名》 ……"
    " １２３ ＡＢＣ 〇 々 龥 㐀 𠮷"
)
OTHER_SCRIPTS = _split(
    "Привет мир Здравствуйте γειά σου こんにちは カタカナ ｶﾀｶﾅ 안녕하세요 สวัสดีครับ नमस्ते বাংলা ქართული "
    "שלום עולם مرحبا بالعالم ٣٤٥ ۱۲۳ אבג123 \u200fשלום\u200e አማርኛ ខ្មែរ ଓଡ଼ିଆ"
)
EMOJI = _split("😊 👍🏽 👩‍👩‍👧‍👦 🇨🇳 🏳️‍🌈 ❤️ ☃ 🤖🤖🤖 1️⃣ 🧑🏿‍🚀 © ™ ½ Ⅷ ² ① ‰ → ≠ ∑ √2 π≈3.14")
CODE = (
    "def f(x: int) -> int:",
    "    return x ** 2  # comment",
    "\t\tif (a && b || !c) { return; }",
    "for i in range(10): print(i, end='')",
    'printf("%d\\n", x[3]);',
    "SELECT * FROM t WHERE id=42;",
    '{"key": [1, 2.5e-3, null, true]}',
    "<div class='a'>&nbsp;</div>",
    "x = 0xDEADBEEF; y = 1_000_000",
    "```python",
    "a -> b => c :: d ... e",
    "let mut v: Vec<u8> = vec![0; 16];",
)
SPACES = (
    " ", " ", " ", "  ", "   ", "     ", "        ", "\t", " \t ", "\n", "\n\n", "\r\n", " \n ", "\r",
    "\u00a0", "\u3000", "\u2009", "\u200b", "\u2028", "\x0b", "\x0c", "\x85", "",
)  # fmt: skip
CONTROLS = (
    "\x00", "\x01", "\x07", "\x08", "\x1b[31m", "\x7f", "\x9f", "\ufeff", "\ufffd", "\ufffe",
    "\U0010ffff", "\ue000",
)  # fmt: skip
MARKS = (
    "e\u0301",
    "a\u0308\u0323",
    "o\u0302\u0301",
    "\u0301",
    "n\u0303",
    "क्ष",
    "Z\u0351\u0310\u0363",
    "が",
    "か\u3099",
)
CONTROL_TOKENS = (
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|im_", "end|>", "<file_sep>", "<s>", "</s>",
    "<0x0A>", "[INST]",
)  # fmt: skip


def lines(count: int = 2000, seed: int = 20240) -> list[str]:
    """The lines; some hold line breaks, none holds a lone surrogate, and all are different."""
    rng = Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        found.setdefault(_line(rng))
    return list(found)


def _line(rng: Random) -> str:
    sources = (WORDS, WORDS, CHINESE, OTHER_SCRIPTS, EMOJI, CODE, CONTROLS, MARKS, CONTROL_TOKENS)
    home = _pick(rng, sources)
    pieces = [_pick(rng, ("", "", "", " ", "  ", "\n"))]
    for _ in range(1 + int(rng.random() * 14)):
        source = home if rng.random() < 0.6 else _pick(rng, sources)
        piece = _pick(rng, source)
        if rng.random() < 0.12:
            piece = _digits(rng)
        elif rng.random() < 0.05:
            piece = chr(_code_point(rng))
        pieces += [piece, _pick(rng, SPACES)]
    return "".join(pieces)


def _digits(rng: Random) -> str:
    return "".join(_pick(rng, "0123456789") for _ in range(1 + int(rng.random() * 9)))


def _code_point(rng: Random) -> int:
    """Any assigned or unassigned code point but surrogates, low ones more often."""
    code = int(0x110000 * rng.random() ** 4)
    return code if not 0xD800 <= code < 0xE000 else 0x4E00


def _pick(rng: Random, items: Sequence[T]) -> T:
    return items[int(rng.random() * len(items))]


if __name__ == "__main__":
    for text in lines():
        print(repr(text))
