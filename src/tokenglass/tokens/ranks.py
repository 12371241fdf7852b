"""tiktoken's rank files: `cl100k_base`, `o200k_base` and others as the tokenizer.json they stand for.

    IQ== 0          a line for each token: its bytes in base64, and its rank, which is also its id
    Ig== 1

tiktoken joins the two neighbours whose joined bytes have the lowest rank, again and again (`build_by_rank` in
`bpe.py`). A tokenizer.json wants pairs: there every way to make a token of two others becomes a merge.
Source: https://github.com/openai/tiktoken (MIT): the algorithm, the patterns, the special tokens.
"""

from __future__ import annotations

import binascii
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenglass.errors import ModelFileError
from tokenglass.tokens.pretokenizers import CL100K, GPT4O, QWEN2, R50K, PreTokenizer
from tokenglass.tokens.vocabulary import byte_letters

_FIM = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")
_QWEN = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


@dataclass(frozen=True)
class Encoding:
    """What a rank file does not say: how words are cut, and the special tokens."""

    name: str
    pattern: str
    special: Mapping[str, int]
    num_ranks: int  # by which a file is known
    nfc: bool = False

    @property
    def pre_tokenizer(self) -> PreTokenizer:
        """How it cuts; a word that is a token stays whole."""
        return PreTokenizer((self.pattern,), ignore_merges=True, nfc=self.nfc)


def _from(start: int, *texts: str) -> dict[str, int]:
    return {text: token_id for token_id, text in enumerate(texts, start)}


ENCODINGS = {
    encoding.name: encoding
    for encoding in (
        Encoding("r50k_base", R50K, {"<|endoftext|>": 50256}, 50256),
        Encoding("p50k_base", R50K, {"<|endoftext|>": 50256}, 50280),
        Encoding(
            "cl100k_base",
            CL100K,
            {**_from(100257, "<|endoftext|>", *_FIM), "<|endofprompt|>": 100276},
            100256,
        ),
        Encoding("o200k_base", GPT4O, {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}, 199998),
        Encoding(
            "qwen",
            QWEN2,
            _from(151643, *_QWEN, *(f"<|extra_{i}|>" for i in range(205))),
            151643,
            nfc=True,
        ),
    )
}
MODELS = {
    "o200k_base": ("gpt-5", "gpt-4o", "gpt-4.1", "gpt-4.5", "chatgpt-4o", "o1", "o3", "o4-mini"),
    "cl100k_base": ("gpt-4", "gpt-3.5", "gpt-3.5-turbo", "gpt-35-turbo", "text-embedding-3-small",
        "text-embedding-3-large", "text-embedding-ada-002"),
    "p50k_base": ("text-davinci-003", "text-davinci-002", "code-davinci-002"),
    "r50k_base": ("davinci", "curie", "babbage", "ada"),
}  # fmt: skip  # each name, or it with more behind a hyphen, uses the encoding


def encoding_of(model: str) -> Encoding | None:
    """The encoding of a model of OpenAI's, or one by its own name: `gpt-4o-mini` gives `o200k_base`."""
    wanted = model.casefold()
    if wanted in ENCODINGS:
        return ENCODINGS[wanted]
    fitting = {
        name: encoding
        for encoding, names in MODELS.items()
        for name in names
        if wanted == name or wanted.startswith(f"{name}-")
    }
    return ENCODINGS[fitting[max(fitting, key=len)]] if fitting else None


def read_ranks(path: Path) -> dict[bytes, int]:
    """The file's tokens. ModelFileError: a line is wrong, a byte has no token, or two have one rank."""
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            if line:
                text, rank = line.split()
                ranks[binascii.a2b_base64(text, strict_mode=True)] = int(rank)
        except (ValueError, binascii.Error):
            raise ModelFileError(path, f"line {number}", "is no token in base64 with its rank") from None
    if not all(bytes([byte]) in ranks for byte in range(256)):
        raise ModelFileError(path, "ranks", "a byte has no token")
    if len(set(ranks.values())) < len(ranks) or min(ranks.values()) < 0:
        raise ModelFileError(path, "ranks", "two tokens have the same rank, or one is below 0")
    return ranks


def guessed(path: Path, ranks: Mapping[bytes, int]) -> Encoding:
    """The encoding with as many ranks. ModelFileError: there is none, so nobody says how words are cut."""
    for encoding in ENCODINGS.values():
        if encoding.num_ranks == len(ranks):
            return encoding
    raise ModelFileError(
        path,
        "ranks",
        f"{len(ranks)} tokens belong to no encoding we know, and the file does not say how words are cut",
        remedy=f"Known are: {', '.join(ENCODINGS)}",
    )


def ranks_spec(ranks: Mapping[bytes, int], encoding: Encoding) -> dict[str, Any]:
    """The tokenizer.json of a rank file."""
    letters = byte_letters()
    texts = {
        "".join(map(letters.__getitem__, token)): ranks[token]
        for token in sorted(ranks, key=ranks.__getitem__)
    }
    split = {"type": "Split", "pattern": {"Regex": encoding.pattern}, "behavior": "Isolated", "invert": False}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    return {
        "added_tokens": [
            {"id": token_id, "content": text, "special": True} for text, token_id in encoding.special.items()
        ],
        "normalizer": {"type": "NFC"} if encoding.nfc else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "vocab": texts,
            "merges": lambda: list(_pairs(texts)),
            "ignore_merges": True,
        },
    }


def _pairs(texts: Collection[str]) -> Iterator[tuple[str, str]]:
    """Every way to make a token of two others, by the token's rank; then the longest left part first."""
    known = frozenset(texts)
    for token in texts:
        for cut in range(len(token) - 1, 0, -1):
            if token[:cut] in known and token[cut:] in known:
                yield token[:cut], token[cut:]
