"""The tokenizer of a folder under GGUF's keys: the same ids as the `tokenizers` library on the same file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.hf_tokenizer import LINES, TEMPLATE, write_tokenizer
from tests.support.tiny_gguf import write_gguf
from tokenglass.errors import ModelFileError
from tokenglass.formats import GGUFFile, StringArray
from tokenglass.tokens import Tokenizer
from tokenglass.tokens.gguf_keys import gguf_keys


def tokenizer_of(folder: Path) -> Tokenizer:
    """By way of a GGUF file with these keys."""
    keys = {
        key: value.to_list() if isinstance(value, StringArray) else value
        for key, value in gguf_keys(folder, vocab_size=313).items()
    }
    with GGUFFile.open(write_gguf(folder / "keys.gguf", keys, {})) as file:
        return Tokenizer.from_gguf(file)


def test_ids_are_those_of_the_library(tmp_path: Path) -> None:
    import tokenizers

    tokenizer = tokenizer_of(write_tokenizer(tmp_path))
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for line in [*LINES, "  spaces\n\n and 12345 tabs\t", "émoji 😀 你好", ""]:
        ids = tokenizer.encode(line)
        assert ids == theirs.encode(line, add_special_tokens=False).ids
        assert tokenizer.decode(ids) == line


def test_special_tokens_and_the_template_come_along(tmp_path: Path) -> None:
    tokenizer = tokenizer_of(write_tokenizer(tmp_path))
    vocabulary = tokenizer.vocabulary
    assert (vocabulary.bos_id, vocabulary.eos_id) == (1, 2)
    assert vocabulary.end_ids == {0, 2}
    assert not vocabulary.add_bos
    assert vocabulary.num_tokens == 313
    assert vocabulary.token_text(312) == "[PAD312]"
    assert tokenizer.encode_chat([{"role": "user", "content": "Paris"}]) == [1, *tokenizer.encode("Paris"), 2]
    (tmp_path / "chat_template.jinja").unlink()
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    config["chat_template"] = [{"name": "tool", "template": "x"}, {"name": "default", "template": TEMPLATE}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert gguf_keys(tmp_path, vocab_size=300)["tokenizer.chat_template"] == TEMPLATE


LETTERS = {"<unk>": 0, "<s>": 1, "<0x0A>": 2, "▁": 3, "a": 4, "b": 5, "ab": 6, "▁ab": 7}
SPM: dict[str, Any] = {
    "model": {"type": "BPE", "vocab": LETTERS, "merges": [["a", "b"], ["▁", "ab"]], "byte_fallback": True,
              "unk_token": "<unk>", "fuse_unk": True},
    "added_tokens": [{"id": 1, "content": "<s>", "special": True}],
    "decoder": {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}]},
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}]},
}  # fmt: skip


def test_merges_of_a_sentencepiece_vocabulary_become_scores(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(SPM))
    keys = gguf_keys(tmp_path, vocab_size=8)
    scores, kinds = keys["tokenizer.ggml.scores"], keys["tokenizer.ggml.token_type"]
    assert isinstance(scores, np.ndarray)
    assert isinstance(kinds, np.ndarray)
    assert scores[[6, 7]].tolist() == [0, -1]
    assert kinds.tolist() == [2, 3, 6, 1, 1, 1, 1, 1]
    assert tokenizer_of(tmp_path).encode("ab ab\n") == [7, 7, 2]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"model": {"type": "Unigram", "vocab": [["a", 0.0]], "unk_id": 0}}, "'Unigram' cannot be written"),
        ({"model": {**SPM["model"], "merges": [["a"]]}}, r"model\.merges: must be pairs of texts"),
        ({"model": {**SPM["model"], "merges": 3}}, r"model\.merges: must be pairs of texts"),
        ({"model": {**SPM["model"], "byte_fallback": False}}, "pre_tokenizer: has no name in GGUF"),
        ({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": "x"}, "behavior": "Isolated"}, {"type": "ByteLevel"}]}},
         "pre_tokenizer: has no name in GGUF"),
    ],
)  # fmt: skip
def test_what_gguf_has_no_words_for_is_refused(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps({**SPM, **change}))
    with pytest.raises(ModelFileError, match=problem):
        gguf_keys(tmp_path, vocab_size=8)


@pytest.mark.parametrize("lower_case", [True, False])
def test_a_vocab_txt_keeps_its_words_and_its_rule_about_capitals(tmp_path: Path, lower_case: bool) -> None:
    """Without the key a vocabulary without capitals would be read as one that lowers them."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "今", "##今", "run", "##ning", "##", "▁", "[", "]"]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lower_case}))
    original = Tokenizer.from_path(tmp_path)
    tokenizer = tokenizer_of(tmp_path)
    assert gguf_keys(tmp_path, vocab_size=13)["tokenizer.ggml.normalizer.lowercase"] is lower_case
    for text in ("今今running", "RUN Running", "[SEP] run [ ]", "xyz ▁"):
        for control in (False, True):
            ids = original.encode(text, control=control)
            assert tokenizer.encode(text, control=control) == ids
            assert tokenizer.decode(ids) == original.decode(ids)
    assert original.encode("RUN") == ([7] if lower_case else [1])


@pytest.mark.parametrize(
    ("config", "words"),
    [({"strip_accents": True}, []), ({"tokenize_chinese_chars": False}, []), ({}, ["##[x]"])],
)
def test_a_vocab_txt_that_gguf_cannot_say_is_refused(
    tmp_path: Path, config: dict[str, Any], words: list[str]
) -> None:
    (tmp_path / "vocab.txt").write_text("\n".join(["[UNK]", "a", *words]), encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": False, **config}))
    with pytest.raises(ModelFileError, match="has no name in GGUF"):
        gguf_keys(tmp_path, vocab_size=8)
