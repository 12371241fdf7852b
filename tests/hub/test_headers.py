"""A tokenizer without its weights: only the header travels, and what comes is a GGUF of full length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.hub.conftest import leftovers
from tests.hub.fake_hub import ENTRY, FakeHub, serving
from tests.support.tiny_llama import TinyLlama, write_tiny_llama
from tokenglass.errors import DownloadError, ModelNotFoundError
from tokenglass.formats import GGUFFile
from tokenglass.hub import header_file, headers, pull
from tokenglass.tokens import Tokenizer

LATER = replace(ENTRY, architecture="qwen9")  # which cannot run, but can be read


@pytest.fixture
def model(tmp_path: Path) -> bytes:
    shape = TinyLlama(hidden=512, num_heads=8, head_dim=64, ffn=1024)
    return write_tiny_llama(tmp_path / "big.gguf", shape=shape).read_bytes()


@pytest.fixture
def hub(model: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    monkeypatch.setattr(headers, "FIRST_BYTES", 1 << 12)  # so that it must read on
    declared = {"X-Linked-Size": str(len(model)), "X-Linked-ETag": f'"{"0" * 64}"'}
    with serving(FakeHub(declared=declared, body=model)) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub


def test_the_header_alone_is_fetched_once_and_gives_the_tokenizer(
    hub: FakeHub, model: bytes, store: Path
) -> None:
    path = header_file(LATER.name, store=store, catalogue=[LATER])
    assert path.stat().st_size == len(model)
    assert path.read_bytes()[-4096:] == bytes(4096)  # never written
    with GGUFFile.open(path) as file:
        tokenizer = Tokenizer.from_gguf(file)
    assert tokenizer.decode(tokenizer.encode("the water")) == "the water"
    asked = len(hub.requests)
    assert header_file(LATER.name, store=store, catalogue=[LATER]) == path
    assert len(hub.requests) == asked
    assert not list(store.glob("*.gguf"))
    assert leftovers(store) == []


def test_the_model_itself_is_used_where_it_is_stored(hub: FakeHub, store: Path, tmp_path: Path) -> None:
    store.mkdir(parents=True, exist_ok=True)
    own = write_tiny_llama(store / ENTRY.stored_as)
    assert header_file(ENTRY.name, store=store, catalogue=[ENTRY]) == own
    assert header_file(own, store=store, catalogue=[ENTRY]) == own
    assert hub.requests == []
    with pytest.raises(ModelNotFoundError):
        header_file("nobody", store=store, catalogue=[ENTRY])


@pytest.mark.parametrize("body", [b"<html>" * 2000, b"GGUF" + bytes(9000)])
def test_a_file_without_a_header_is_refused_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, store: Path, body: bytes
) -> None:
    declared = {"X-Linked-Size": str(len(body)), "X-Linked-ETag": f'"{"0" * 64}"'}
    with serving(FakeHub(declared=declared, body=body)) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        with pytest.raises(DownloadError, match="header"):
            header_file(ENTRY.name, store=store, catalogue=[ENTRY])
    assert not (store.parent / "tokenizers" / ENTRY.stored_as).exists()
    assert leftovers(store) == []


def test_a_cut_header_is_said_and_leaves_nothing(hub: FakeHub, store: Path) -> None:
    hub.cuts = [100]
    with pytest.raises(DownloadError):
        header_file(ENTRY.name, store=store, catalogue=[ENTRY])
    assert leftovers(store) == []


def test_a_header_is_not_taken_for_the_model(hub: FakeHub, store: Path) -> None:
    header_file(ENTRY.name, store=store, catalogue=[ENTRY])
    with pytest.raises(
        DownloadError
    ):  # the checksum it declares is not that of the body: it was asked for all
        pull(ENTRY.name, store=store, catalogue=[ENTRY])
