"""Ids of real tokenizers equal the original implementations': on 5,000 hard lines, on any text, on a million
characters.

    tokenizers      tokenizer.json of Qwen3, DeepSeek, Llama 3, Gemma 3; BERT and GPT-2 through Transformers
    tiktoken        cl100k_base, o200k_base, Qwen's ranks
    sentencepiece   the three models of its own tests
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tokens.corpus import CONTROL_TOKENS, lines
from tests.tokens.real_files import path_of
from tokenglass.tokens import Tokenizer
from tokenglass.tokens.ranks import ENCODINGS, read_ranks

pytestmark = pytest.mark.oracle
Reference = Callable[[str], list[int]]
MILLION = 1_000_000
SPECIAL = (
    "<|endoftext|>", "<|im_start|>", "<think>", "<tool_call>", "<｜User｜>", "<start_of_turn>", "<bos>",
    "[SEP]", "[UNK]", "<|begin_of_text|>", "<|eot_id|>", "<unused7>", *CONTROL_TOKENS,
)  # fmt: skip


def by_tokenizers(path: Path) -> tuple[Path, Reference]:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(str(path / "tokenizer.json"))
    tokenizer.no_truncation()
    return path, lambda text: list(tokenizer.encode(text, add_special_tokens=False).ids)


def by_transformers(path: Path, name: str, **files: str) -> tuple[Path, Reference]:
    transformers = pytest.importorskip("transformers")
    tokenizer = getattr(transformers, name)(**{key: str(path / file) for key, file in files.items()})
    return path, lambda text: list(tokenizer(text, add_special_tokens=False, verbose=False).input_ids)


def by_tiktoken(path: Path, name: str) -> tuple[Path, Reference]:
    """tiktoken with its own pattern and special tokens; the ranks are read from the package's file."""
    tiktoken = pytest.importorskip("tiktoken")
    public: Any = pytest.importorskip("tiktoken_ext.openai_public")
    path = path.with_suffix(".tiktoken")
    ranks = read_ranks(path)
    if name == "qwen":
        pattern = (
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
            r"|\s*[\r\n]+|\s+(?!\S)|\s+"
        )
        special = dict(ENCODINGS[name].special)
        known = {"name": name, "pat_str": pattern, "mergeable_ranks": ranks, "special_tokens": special}
    else:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(public, "load_tiktoken_bpe", lambda *args, **options: ranks)
            known = getattr(public, name)()
    encoding = tiktoken.Encoding(**known)

    def encode(text: str) -> list[int]:
        text = unicodedata.normalize("NFC", text) if name == "qwen" else text
        return list(encoding.encode(text, allowed_special="all"))

    return path, encode


def by_sentencepiece(path: Path, name: str) -> tuple[Path, Reference]:
    sentencepiece = pytest.importorskip("sentencepiece")
    path = path / f"{name}.model"
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return path, lambda text: list(processor.encode(text))


ORIGINALS: dict[str, Callable[[Path], tuple[Path, Reference]]] = {
    "qwen3": by_tokenizers,
    "deepseek": by_tokenizers,
    "llama3": by_tokenizers,
    "gemma3": by_tokenizers,
    "gpt2": partial(by_transformers, name="GPT2Tokenizer", vocab="encoder.json", merges="vocab.bpe"),
    "bert-base-chinese": partial(by_transformers, name="BertTokenizer", vocab=""),
    "qwen": partial(by_tiktoken, name="qwen"),
    "cl100k_base": partial(by_tiktoken, name="cl100k_base"),
    "o200k_base": partial(by_tiktoken, name="o200k_base"),
    "sentencepiece BPE": partial(by_sentencepiece, name="botchan_en_bpe_1000"),
    "sentencepiece unigram": partial(by_sentencepiece, name="botchan_en_unigram_1000"),
    "sentencepiece Japanese": partial(by_sentencepiece, name="kyoto_ja_unigram_8000"),
}


@pytest.fixture(scope="module", params=list(ORIGINALS))
def pair(request: pytest.FixtureRequest, tokenizer_packages: Path) -> tuple[Tokenizer, Reference, Reference]:
    """Our tokenizer, its ids for a text, and the original's."""
    name = request.param.split(" ")[0]
    path, reference = ORIGINALS[request.param](path_of(tokenizer_packages, name))
    tokenizer = Tokenizer.from_path(path)
    has_control = name != "sentencepiece"  # there no text ever is a control token
    bos = [tokenizer.vocabulary.bos_id]

    def original(text: str) -> list[int]:
        ids = reference(text)
        while ids[:2] == bos * 2:  # ours never begins with two
            ids = ids[1:]
        return ids

    return tokenizer, partial(tokenizer.encode, bos=False, control=has_control), original


def test_ids_of_5000_lines(pair: tuple[Tokenizer, Reference, Reference]) -> None:
    tokenizer, ours, reference = pair
    wrong = [line for line in lines(5000, 31) if ours(line) != reference(line)]
    assert not wrong
    for line in lines(5000, 31):
        assert not any(tokenizer.vocabulary.is_control(i) for i in tokenizer.encode(line, bos=False)), repr(
            line
        )


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.lists(
        st.sampled_from(SPECIAL)
        | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
        | st.text("a b\n\r\t'1你，。！=-\u0301\u3000\u00a0", max_size=12),
        max_size=8,
    ).map("".join)
)
def test_ids_of_any_text(pair: tuple[Tokenizer, Reference, Reference], text: str) -> None:
    _, ours, reference = pair
    assert ours(text) == reference(text)


@pytest.mark.parametrize("what", ["mixed", "letters"])
def test_ids_of_a_million_characters(pair: tuple[Tokenizer, Reference, Reference], what: str) -> None:
    """One line, and one word: the same ids, and no more memory than a multiple of the text."""
    _, ours, reference = pair
    text = " ".join(line.replace("\n", " ") for line in lines(5000, 32)) if what == "mixed" else "ab"
    text = (text * (MILLION // len(text) + 1))[:MILLION]
    assert ours(text) == reference(text)


@pytest.mark.real_models
@pytest.mark.parametrize(
    ("model", "original"),
    [("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "qwen3"), ("gemma-3-270m-q4_k_m.gguf", "gemma3")],
)
def test_a_gguf_gives_the_ids_of_its_familys_tokenizer_json(
    tokenizer_packages: Path, model: str, original: str
) -> None:
    """Qwen2.5 and Qwen3 have one vocabulary but for their special tokens."""
    path = Path(os.environ.get("TOKENGLASS_TEST_MODELS", "")) / model
    if not path.is_file():
        pytest.skip(f"TOKENGLASS_TEST_MODELS has no {model}")
    gguf, json_ = Tokenizer.from_path(path), Tokenizer.from_path(path_of(tokenizer_packages, original))
    assert [
        line for line in lines(5000, 31) if gguf.encode(line, bos=False) != json_.encode(line, bos=False)
    ] == []
