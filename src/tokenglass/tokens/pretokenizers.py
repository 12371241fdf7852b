"""How byte-level vocabularies cut a text into words before merging, by the name in `tokenizer.ggml.pre`.

Merges never cross a cut, so a wrong cut gives other ids. The rules are those of each model's own
tokenizer.json; llama.cpp (`src/llama-vocab.cpp`, MIT) gives the names, and some rules in another spelling.
A name that is not here is refused: guessing would quietly make a model worse.
"""

from __future__ import annotations

from dataclasses import dataclass

DIGITS = "<digits>"  # cut out every single digit (Unicode category N)
GPT2_WORDS = "<gpt2>"  # GPT-2's own rule, built into Hugging Face's ByteLevel step

_APOSTROPHE = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_MARKS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
LLAMA3 = rf"{_APOSTROPHE}|{_WORD}|\p{{N}}{{1,3}}|{_MARKS}|{_SPACES}"
QWEN2 = rf"{_APOSTROPHE}|{_WORD}|\p{{N}}|{_MARKS}|{_SPACES}"
QWEN35 = (
    rf"{_APOSTROPHE}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
    rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}"
)
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASED = rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+", rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
_SLASH_MARKS = r" ?[^\s\p{L}\p{N}]+[\r\n/]*"
GPT4O = rf"{_CASED[0]}{_APOSTROPHE}?|{_CASED[1]}{_APOSTROPHE}?|\p{{N}}{{1,3}}|{_SLASH_MARKS}|{_SPACES}"
TEKKEN = rf"{_CASED[0]}|{_CASED[1]}|\p{{N}}|{_SLASH_MARKS}|{_SPACES}"
_GPT2_REGEX = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
R50K = rf"{_GPT2_REGEX}|\s+"
CL100K = (  # the space at the end of a text stays in one piece, line breaks and all
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++\z|\s*[\r\n]|\s+(?!\S)|\s"
)
CL100K_DIGITS = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*"
    r"|\s*[\r\n]|\s+(?!\S)|\s+"
)
SEED_CODER = rf"{_APOSTROPHE}|{_WORD}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_SPACES}"
EXAONE_MOE = (
    rf"{_APOSTROPHE}|[^\r\n\p{{L}}\p{{N}}]?(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
)
MINICPM5 = rf"{_APOSTROPHE}|{_WORD}|\p{{N}}+|{_MARKS}|{_SPACES}"
_BLOOM = r" ?[^(\s|.,!?…。，、।۔،)]+"
_YOUTU_SCRIPTS = "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+"
_CJK = "[一-龥ࠀ-一가-퟿]+"
_DEEPSEEK_LETTERS = (  # cased letters; \x{...}: those that Unicode normalisation would change
    r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\x{1F7D}ᾀ-ᾴᾶ-ᾼ\x{1FBE}"
    r"ῂ-ῄῆ-ῌῐ-\x{1FD3}ῖ-\x{1FDB}ῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\x{2126}ℨ\x{212A}-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"
)
_DEEPSEEK3_WORDS = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class PreTokenizer:
    """Cuts made one after the other: a rule's matches, and what lies between them, become separate words."""

    rules: tuple[str, ...]
    ignore_merges: bool = False  # a whole word that is a token is taken at once
    add_bos: bool = False  # unless the file says otherwise
    nfc: bool = False  # Unicode composition first, so decoding may not give the same bytes back


def _named(names: str, pre_tokenizer: PreTokenizer) -> dict[str, PreTokenizer]:
    return dict.fromkeys(names.split(), pre_tokenizer)


PRE_TOKENIZERS: dict[str, PreTokenizer] = {
    **_named(
        "default",  # written when the converter did not know: llama.cpp's fallback
        PreTokenizer((r"[\p{P}\$\+<=>\^~\|]+", _GPT2_REGEX, r"\p{N}+", "[0-9][0-9][0-9]")),
    ),
    **_named(
        "gpt-2 phi-2 mpt olmo jais mellum modern-bert exaone4 jina-es jina-de jina-v1-en jina-v2-es "
        "jina-v2-de jina-v2-code roberta-bpe gigachat a.x-4.0 trillion granite-docling",
        PreTokenizer((GPT2_WORDS,)),
    ),
    **_named(
        "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2",
        PreTokenizer((DIGITS, GPT2_WORDS)),
    ),
    **_named("falcon", PreTokenizer((r"[\p{P}\$\+<=>\^~\|`]+", _GPT2_REGEX, "[0-9][0-9][0-9]"))),
    **_named(
        "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
        PreTokenizer((LLAMA3,), ignore_merges=True, add_bos=True),
    ),
    **_named("dbrx smaug-bpe chatglm-bpe glm4", PreTokenizer((LLAMA3,))),
    **_named("qwen2 deepseek-r1-qwen megrez kormo f2llmv2", PreTokenizer((QWEN2,), nfc=True)),
    **_named("stablelm2 grok-2 hunyuan solar-open", PreTokenizer((QWEN2,))),
    **_named("qwen35", PreTokenizer((QWEN35,), nfc=True)),
    **_named("gpt-4o llama4 kanana2 talkie minimax-m2", PreTokenizer((GPT4O,))),
    **_named("bailingmoe bailingmoe2 llada-moe", PreTokenizer((CL100K_DIGITS,))),
    **_named("seed-coder", PreTokenizer((SEED_CODER,))),
    **_named("exaone-moe", PreTokenizer((EXAONE_MOE,))),
    **_named("ufakzeka", PreTokenizer((QWEN2.removeprefix(f"{_APOSTROPHE}|"),))),
    **_named("laguna", PreTokenizer((r"[^\n]+|[\n]+", QWEN2))),
    **_named("minicpm5", PreTokenizer((r"\p{N}{1,3}", MINICPM5), ignore_merges=True)),
    **_named("poro-chat bloom gpt3-finnish", PreTokenizer((_BLOOM,))),
    **_named("viking", PreTokenizer((_BLOOM, DIGITS))),
    **_named(
        "youtu", PreTokenizer((_YOUTU_SCRIPTS, GPT4O.replace(r"\p{N}{1,3}", r"\p{N}")), ignore_merges=True)
    ),
    **_named("tekken", PreTokenizer((TEKKEN,), ignore_merges=True, add_bos=True)),
    **_named(
        "deepseek-llm",
        PreTokenizer(
            (r"[\r\n]", _DEEPSEEK_LETTERS, r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", _CJK, DIGITS)
        ),
    ),
    **_named("deepseek-coder", PreTokenizer((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CJK, DIGITS))),
    **_named(
        "deepseek-v3 hunyuan-dense joyai-llm hy_v4",
        PreTokenizer((r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", _DEEPSEEK3_WORDS)),
    ),
}
