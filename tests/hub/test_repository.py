"""`OWNER/NAME`: a whole repository pulled from our own small hub, found again, listed, served on, removed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.fake_hub import CONTENT, SHA256, FakeHub, serving
from tests.hub.test_share import ask, running
from tests.support.hf_folder import write_tiny_folder
from tests.support.tiny_llama import TinyLlama
from tokenglass.errors import DownloadError, ModelNotFoundError, ParameterError
from tokenglass.hub import model_name, pull, remove, resolve, stored_models, tokenizer_path
from tokenglass.hub.catalogue import repository_name, stored_name
from tokenglass.hub.repository import _needed
from tokenglass.hub.share import Share

WORDS = "Some.One/Tiny-0.5B"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the hub; what a model does not need lies beside it."""
    store = tmp_path_factory.mktemp("hub") / "models"
    folder = store / "Some.One--Tiny-0.5B"
    folder.mkdir(parents=True)
    write_tiny_folder(folder, TinyLlama())
    for name in ("README.md", "model.onnx", "pytorch_model.bin"):
        (folder / name).write_text("not needed")
    (store / "Some.One--Only-GGUF").mkdir()
    (store / "Some.One--Only-GGUF" / "a-q8_0.gguf").write_bytes(b"GGUF")
    return folder


@pytest.fixture
def hub(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Share]:
    with running(Share(folder.parent)) as share:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{share.port}")
        yield share


def test_what_a_model_needs_is_fetched_and_found_again(
    hub: Share, folder: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = pull(WORDS, store=store)
    assert path == store / "Some.One--Tiny-0.5B"
    assert sorted(file.name for file in path.iterdir()) == [
        "chat_template.jinja", "config.json", "generation_config.json", "model.safetensors", "tokenizer.json",
        "tokenizer_config.json",
    ]  # fmt: skip
    assert (path / "model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()
    monkeypatch.setenv("TOKENGLASS_OFFLINE", "1")
    assert pull(WORDS, store=store) == path
    assert resolve(WORDS, store=store) == resolve("Some.One--Tiny-0.5B", store=store) == path
    assert tokenizer_path(WORDS, store=store) == path
    assert (stored_models(store), model_name(path)) == ([path], WORDS)
    with pytest.raises(ModelNotFoundError, match=f"Did you mean {WORDS}"):
        resolve("Some.One-Tiny-0.5", store=store)
    assert remove(WORDS, store=store)
    assert stored_models(store) == []


def test_a_damaged_file_is_fetched_again(hub: Share, folder: Path, store: Path) -> None:
    path = pull(WORDS, store=store) / "config.json"
    good = path.read_bytes()
    path.write_bytes(b"x" * len(good))
    pull(WORDS, store=store)
    assert path.read_bytes() == good


def test_what_is_not_stored_is_no_path_and_the_pull_is_named(hub: Share, store: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=f"tokenglass models pull {WORDS}"):
        resolve(WORDS, store=store)
    with pytest.raises(DownloadError, match="has no /api/models/some/body"):
        pull("some/body", store=store)


def test_of_gguf_files_one_must_be_named(hub: Share, store: Path) -> None:
    with pytest.raises(DownloadError, match=r"Name one of them: Some\.One/Only-GGUF/a-q8_0\.gguf"):
        pull("Some.One/Only-GGUF", store=store)


def test_offline_nothing_is_asked(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENGLASS_OFFLINE", "1")
    with pytest.raises(DownloadError, match="downloads are switched off"):
        pull(WORDS, store=store)


@pytest.mark.parametrize("listing", [b"", b"[]", b"{}", b'{"siblings": [{}]}', b"\xff", b"[" * 9999])
def test_a_listing_that_makes_no_sense_is_one_line(
    listing: bytes, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(FakeHub(body=listing)) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        with pytest.raises(DownloadError, match=f"lists no files of {WORDS}"):
            pull(WORDS, store=store)


def test_modelscope_is_asked_only_when_it_is_named(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There the same name may be somebody else's."""
    names = ("config.json", "model.safetensors", "README.md")
    files = [{"Path": name, "Size": len(CONTENT), "Sha256": SHA256} for name in names]
    with serving(FakeHub(listing=json.dumps({"Data": {"Files": files}}).encode())) as hub:
        monkeypatch.setenv("MODELSCOPE_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
        with pytest.raises(DownloadError, match="cannot be reached"):
            pull(WORDS, store=store)
        assert hub.requests == []
        path = pull(WORDS, store=store, source="modelscope")
    assert sorted(file.name for file in path.iterdir()) == ["config.json", "model.safetensors"]
    with pytest.raises(ParameterError, match="wheel has no a/b"):
        pull("a/b", store=store, source="wheel")


def test_names_that_leave_the_folder_are_never_taken() -> None:
    listed = ["config.json", "../vocab.txt", "a/tokenizer.json", "/etc/vocab.txt", "model.safetensors"]
    assert _needed(WORDS, listed) == ["config.json", "model.safetensors"]
    assert _needed(WORDS, ["config.json", "config.json", "vocab.txt"]) == ["config.json", "vocab.txt"]
    shards = ["pytorch_model-00001-of-00002.bin", "pytorch_model.bin.index.json"]
    assert _needed(WORDS, ["config.json", *shards, "tf_model.h5"]) == ["config.json", *shards]
    with pytest.raises(DownloadError, match="holds no model"):
        _needed(WORDS, ["config.json", "flax_model.msgpack"])


@pytest.mark.parametrize("words", ["a", "a/b/c", "a/", "/b", "../b", "a/..", "~/b", "a b/c", "a/b\0"])
def test_other_words_name_no_repository(words: str) -> None:
    assert stored_name(words) is None


def test_names_and_folders_go_both_ways() -> None:
    assert repository_name(stored_name(WORDS) or "") == WORDS
    assert repository_name("my-own") is repository_name("--x") is None


def test_a_repository_is_found_without_its_owner(hub: Share) -> None:
    """As `bert-base-chinese` is on Hugging Face."""
    response, body = ask(hub, "/Tiny-0.5B/resolve/main/config.json")
    assert (response.status, json.loads(body)["model_type"]) == (200, "llama")
    assert json.loads(ask(hub, "/api/models/Tiny-0.5B")[1])["id"] == WORDS
    assert ask(hub, "/nobody/resolve/main/config.json")[0].status == 404
