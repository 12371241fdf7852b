"""Small vocabularies as GGUF files without tensors: GPT-2 style, and SentencePiece style with scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.support.tiny_gguf import write_gguf
from tests.support.tiny_llama import tiny_metadata
from tokenglass.formats import GGUFFile
from tokenglass.tokens import Tokenizer, TokenKind

SENTENCEPIECE_TEXTS = (
    "▁", *"abcdehilnortw,.", "▁t", "he", "▁the", "ll", "llo", "▁he", "▁hello", "▁w", "or", "▁wor", "ld",
    "▁world", "你", "好",
)  # fmt: skip


def byte_level_metadata(
    *, control: tuple[str, ...] = (), user_defined: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The tiny model's vocabulary with further tokens at its end."""
    metadata = tiny_metadata()
    metadata["tokenizer.ggml.tokens"] = [*metadata["tokenizer.ggml.tokens"], *control, *user_defined]
    kinds = [TokenKind.CONTROL] * len(control) + [TokenKind.USER_DEFINED] * len(user_defined)
    metadata["tokenizer.ggml.token_type"] = [*metadata["tokenizer.ggml.token_type"], *map(int, kinds)]
    return metadata


def sentencepiece_metadata() -> dict[str, Any]:
    """<unk>, <s>, </s>, 256 bytes, then letters and their joins; the earlier the better the score."""
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    tokens = ["<unk>", "<s>", "</s>", *bytes_, *SENTENCEPIECE_TEXTS]
    kinds = [TokenKind.UNKNOWN, TokenKind.CONTROL, TokenKind.CONTROL] + [TokenKind.BYTE] * 256
    kinds += [TokenKind.NORMAL] * len(SENTENCEPIECE_TEXTS)
    metadata = tiny_metadata()
    for key in ("pre", "merges", "add_space_prefix", "add_bos_token", "padding_token_id"):
        del metadata[f"tokenizer.ggml.{key}"]
    return {
        **metadata,
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [int(kind) for kind in kinds],
        "tokenizer.ggml.scores": -np.arange(len(tokens), dtype=np.float32),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }


def open_gguf(folder: Path, metadata: dict[str, Any], **changes: Any) -> GGUFFile:
    """A file with `metadata`; `changes` replace `tokenizer.ggml.<name>`, None removes it."""
    keys = {**metadata, **{f"tokenizer.ggml.{name}": value for name, value in changes.items()}}
    path = folder / "vocabulary.gguf"
    write_gguf(path, {key: value for key, value in keys.items() if value is not None}, {})
    return GGUFFile.open(path)


def tokenizer_of(folder: Path, metadata: dict[str, Any], **changes: Any) -> Tokenizer:
    with open_gguf(folder, metadata, **changes) as gguf:
        return Tokenizer.from_gguf(gguf)
