"""A GGUF's tokenizer as the files of a folder: the same ids by our reader and by Transformers."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from tests.support.tiny_llama import write_tiny_llama
from tokenglass.errors import ModelFileError
from tokenglass.formats import open_model
from tokenglass.tokens import Tokenizer
from tokenglass.tokens.export import tokenizer_files

REAL = [
    "smollm2-135m-instruct-q4_1.gguf",
    "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    "gemma-3-270m-q4_k_m.gguf",
]
LINES = [
    "The capital of France is Paris.", "  two  spaces\n\n\tand a tab\r\n", "He's 12345 years, I'LL say",
    "用一句话介绍北京。", "café naïve e\u0301", "😀👩‍💻 🇨🇳", "<|im_start|> is text here", " x", "\n",
    "a" * 300, "def f(x):\n    return x**2  # ok\n", "Привет, мир! שלום مرحبا", "\u200b\ufeff¼ ﬁ",
]  # fmt: skip
SPM = {
    "tokenizer.ggml.model": "llama", "tokenizer.ggml.pre": "default", "tokenizer.ggml.merges": None,
    "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>", "<0x0A>", "▁", "a", "b", "ab", "▁ab"],
    "tokenizer.ggml.scores": np.array([0, 0, 0, 0, -3, -3, -3, -1, -2], np.float32),
    "tokenizer.ggml.token_type": np.array([2, 3, 3, 6, 1, 1, 1, 1, 1], np.int32),
    "tokenizer.ggml.bos_token_id": np.uint32(1), "tokenizer.ggml.eos_token_id": np.uint32(2),
    "tokenizer.ggml.padding_token_id": None, "tokenizer.ggml.unknown_token_id": np.uint32(0),
    "tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_space_prefix": True,
}  # fmt: skip
WORDS = {
    **SPM, "tokenizer.ggml.model": "bert", "tokenizer.ggml.scores": None,
    "tokenizer.ggml.add_bos_token": None, "tokenizer.ggml.add_space_prefix": None,
    "tokenizer.ggml.tokens": ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁run", "ning", "▁今", "▁天", "▁,"],
    "tokenizer.ggml.token_type": np.array([3, 3, 3, 3, 1, 1, 1, 1, 1], np.int32),
    "tokenizer.ggml.bos_token_id": None, "tokenizer.ggml.eos_token_id": None,
    "tokenizer.ggml.unknown_token_id": np.uint32(1),
}  # fmt: skip


def exported(path: Path, folder: Path) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizer of the file, and the one read back from the folder."""
    with open_model(path) as file:
        for name, text in tokenizer_files(file).items():
            (folder / name).write_text(text, encoding="utf-8")
        return Tokenizer.from_gguf(file), Tokenizer.from_path(folder)


def test_a_tokenizer_comes_back_as_it_was(tiny_model_path: Path, tmp_path: Path) -> None:
    original, back = exported(tiny_model_path, tmp_path)
    for line in LINES:
        assert back.encode(line) == original.encode(line)
        assert back.decode(back.encode(line)) == line
    a, b = original.vocabulary, back.vocabulary
    assert (a.bos_id, a.eos_id, a.pad_id, a.end_ids) == (b.bos_id, b.eos_id, b.pad_id, b.end_ids)
    assert a.control == b.control
    chat = [{"role": "user", "content": "<|im_end|> is text"}]
    assert back.encode_chat(chat) == original.encode_chat(chat)


def test_pieces_with_a_space_before_them_come_back(tmp_path: Path) -> None:
    original, back = exported(write_tiny_llama(tmp_path / "m.gguf", metadata=SPM), tmp_path)
    assert original.encode("ab ab\n") == [1, 8, 8, 3]
    for line in ("ab ab\n", "a b", "abab"):
        assert back.encode(line) == original.encode(line)
        assert back.decode(back.encode(line, bos=False)) == original.decode(original.encode(line, bos=False))


@pytest.mark.parametrize(("lower_case", "ids"), [(True, [6, 7, 4, 5, 8, 1]), (False, [6, 7, 1, 8, 1])])
def test_words_come_back(tmp_path: Path, lower_case: bool, ids: list[int]) -> None:
    keys = {**WORDS, "tokenizer.ggml.normalizer.lowercase": lower_case}
    original, back = exported(write_tiny_llama(tmp_path / "m.gguf", metadata=keys), tmp_path)
    assert original.encode("今天 Running, x") == ids
    for line in ("今天 Running,", "run run", "x"):
        assert back.encode(line) == original.encode(line)


def test_a_unigram_vocabulary_is_refused(tmp_path: Path) -> None:
    path = write_tiny_llama(tmp_path / "m.gguf", metadata={**SPM, "tokenizer.ggml.model": "t5"})
    with (
        open_model(path) as file,
        pytest.raises(ModelFileError, match="a unigram vocabulary cannot"),
    ):
        tokenizer_files(file)


@pytest.mark.oracle
@pytest.mark.real_models
@pytest.mark.parametrize("name", REAL)
def test_transformers_gives_the_same_ids(name: str, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    path = Path(os.environ.get("TOKENGLASS_TEST_MODELS", "nowhere"), name)
    if not path.is_file():
        pytest.skip(f"TOKENGLASS_TEST_MODELS has no {name}")
    original, back = exported(path, tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    control = next(text for text in original.vocabulary.control if len(text) > 3)
    for line in LINES:
        line = line.replace("<|im_start|>", "<")
        assert theirs.encode(line) == original.encode(line) == back.encode(line), line
    marked = f"a{control}b"
    assert theirs.encode(marked) == original.encode(marked, control=True)
    assert theirs.decode(original.encode(LINES[3]), skip_special_tokens=True) == LINES[3]
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["add_bos_token"] == (
        original.vocabulary.add_bos
    )
