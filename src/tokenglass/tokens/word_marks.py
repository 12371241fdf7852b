"""How a token says where a word begins or goes on: `▁` and `##`, and WordPiece with the one or the other."""

from __future__ import annotations

SPACE_MARK = "▁"  # SentencePiece's stand-in for a space
CONTINUES = "##"  # WordPiece's mark of a token that continues a word


def as_in_vocab_txt(raw: bytes) -> bytes:
    """A GGUF marks the words' beginnings, vocab.txt their rests: "▁run", "ning" are "run", "##ning"."""
    mark = SPACE_MARK.encode()
    if _is_special(raw):
        return raw
    return raw.removeprefix(mark) if raw.startswith(mark) else CONTINUES.encode() + raw


def as_in_gguf(raw: bytes) -> bytes:
    """The other way round."""
    mark = CONTINUES.encode()
    if _is_special(raw):
        return raw
    return raw[len(mark) :] if raw.startswith(mark) and len(raw) > len(mark) else SPACE_MARK.encode() + raw


def _is_special(raw: bytes) -> bool:
    return raw.startswith(b"[") and raw.endswith(b"]")
