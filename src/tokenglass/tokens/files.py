"""From a folder or a file to a tokenizer's parts: which kind of file it is, and who reads it.

tokenizer.json                            tokenizer_json.py
vocab.txt                                 wordpiece.py
vocab.json + merges.txt                   below (GPT-2; its first names are encoder.json, vocab.bpe)
tokenizer.model, spiece.model, *.model    sentencepiece.py
*.tiktoken                                ranks.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tokenglass.errors import ModelFileError
from tokenglass.formats.json_file import read_json
from tokenglass.tokens.bpe import build_by_rank
from tokenglass.tokens.ranks import ENCODINGS, Encoding, guessed, ranks_spec, read_ranks
from tokenglass.tokens.sentencepiece import read_model
from tokenglass.tokens.settings import Settings, read_settings
from tokenglass.tokens.tokenizer_json import check_spec, encoder_of, vocabulary_of
from tokenglass.tokens.vocabulary import Encoder, Vocabulary
from tokenglass.tokens.wordpiece import SPECIAL, wordpiece_spec

GPT2_FILES = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))
NAMES = (
    "tokenizer.json", "vocab.txt", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "vocab.json",
    "encoder.json", "*.tiktoken", "*.model",
)  # fmt: skip  # in the order in which a folder is searched
_RANK_LINE = re.compile(rb"[A-Za-z0-9+/]+={0,2} \d+\r?\n")


@dataclass(frozen=True)
class Parts:
    """What a `Tokenizer` is made of."""

    vocabulary: Vocabulary
    build: Callable[[], Encoder]
    chat_template: Mapping[str, str]


def read_tokenizer(path: Path, encoding: str | None = None) -> Parts:
    """The tokenizer of a folder or a file; other files of the folder are asked for its settings.

    encoding: the name in `ENCODINGS` of a rank file; None: known by its length.

    ModelFileError: there is no tokenizer, or a file is broken.
    """
    folder = path if path.is_dir() else path.parent
    file = path if not path.is_dir() else _found(path)
    try:
        settings = read_settings(folder)
        if _is_sentencepiece(file):
            return Parts(*read_model(file, settings), settings.chat_template)
        ranked = _ranked(file, encoding)
        spec = ranks_spec(*ranked) if ranked else _spec(file, settings, encoding)
    except OSError as error:
        raise ModelFileError(file, "file", f"cannot be read: {error.strerror}") from error
    check_spec(file, spec)
    vocabulary = vocabulary_of(file, spec, settings)
    build = (
        partial(build_by_rank, vocabulary, ranked[1].pre_tokenizer)
        if ranked
        else partial(encoder_of, file, spec, vocabulary.control)
    )
    return Parts(vocabulary, build, settings.chat_template)


def read_spec(folder: Path) -> tuple[Path, dict[str, Any]]:
    """The file of a folder's tokenizer, and the tokenizer.json it is or stands for. ModelFileError: a
    SentencePiece model, which is none; or as in `read_tokenizer`.
    """
    file = _found(folder)
    if _is_sentencepiece(file):
        raise ModelFileError(file, "tokenizer", "only a tokenizer.json can be written as GGUF")
    return file, _spec(file, read_settings(folder), None)


def _is_sentencepiece(path: Path) -> bool:
    """By its name, but some `tokenizer.model` are rank files."""
    with path.open("rb") as file:
        return path.suffix == ".model" and not _RANK_LINE.match(file.read(4096))


def _found(folder: Path) -> Path:
    for name in NAMES:
        for path in sorted(folder.glob(name)):
            if path.is_file():
                return path
    raise ModelFileError(folder, "tokenizer", f"the folder has none of {', '.join(NAMES)}")


def _ranked(path: Path, encoding: str | None) -> tuple[dict[bytes, int], Encoding] | None:
    """The tokens of a rank file and what they belong to; None: the file is of another kind."""
    with path.open("rb") as file:
        if not _RANK_LINE.match(file.read(4096)):
            return None
    ranks = read_ranks(path)
    return ranks, ENCODINGS[encoding] if encoding else guessed(path, ranks)


def _spec(path: Path, settings: Settings, encoding: str | None) -> dict[str, Any]:
    with path.open("rb") as file:
        start = file.read(4096)
    for vocab, merges in GPT2_FILES:
        if path.name in (vocab, merges):
            return _gpt2(path.with_name(vocab), path.with_name(merges))
    if ranked := _ranked(path, encoding):
        return ranks_spec(*ranked)
    if path.suffix == ".json" or start.lstrip()[:1] == b"{":
        return read_json(path)
    return _bert(path, settings)


def _bert(path: Path, settings: Settings) -> dict[str, Any]:
    config = settings.config
    named = [text for name in ("unk", "cls", "sep", "pad", "mask") if (text := settings.named.get(name))]
    return wordpiece_spec(
        [line.strip() for line in _lines(path)],
        lower_case=config.get("do_lower_case", True) is not False,
        strip_accents=config.get("strip_accents"),
        split_chinese=config.get("tokenize_chinese_chars", True) is not False,
        special=[*dict.fromkeys([*SPECIAL, *named])],
    )


def _gpt2(vocab: Path, merges: Path) -> dict[str, Any]:
    """GPT-2's own pair of files. `<|endoftext|>` is the one special token."""
    ids = read_json(vocab)
    pairs = [line.split(" ") for line in _lines(merges) if line and not line.startswith("#version")]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    special = [text for text in ("<|endoftext|>",) if text in ids]
    return {
        "added_tokens": [{"id": ids[text], "content": text, "special": True} for text in special],
        "pre_tokenizer": byte_level,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": ids, "merges": pairs},
    }


def _lines(path: Path) -> Sequence[str]:
    """Lines end at a line feed only: vocabularies have tokens such as U+2028."""
    try:
        lines = path.read_bytes().decode().replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        raise ModelFileError(path, "text", f"is not UTF-8 at byte {error.start}") from None
    return lines[:-1] if lines[-1] == "" else lines
