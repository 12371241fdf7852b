"""Where rank files and small files of folders are found; the network is a server on this machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hub.conftest import leftovers
from tests.hub.fake_hub import CONTENT, SHA256, FakeHub, serving
from tokenglass.errors import DownloadError, ModelNotFoundError
from tokenglass.hub import rank_file, tokenizer_files, tokenizer_path

ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
OFFLINE = {"TOKENGLASS_OFFLINE": "1"}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "home" / "models"


@pytest.mark.parametrize("variable", ["TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"])
def test_tiktokens_own_cache_is_used_if_the_checksum_is_right(
    variable: str, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(tokenizer_files.RANK_SHA256, "o200k_base", hashlib.sha256(b"ranks").hexdigest())
    path = tmp_path / hashlib.sha1(ADDRESS.encode()).hexdigest()
    environ = {variable: str(tmp_path), **OFFLINE}
    path.write_bytes(b"other")
    with pytest.raises(DownloadError, match=r"o200k_base\.tiktoken is not here"):
        rank_file("o200k_base", store=store, environ=environ)
    path.write_bytes(b"ranks")
    assert rank_file("o200k_base", store=store, environ=environ) == path


def test_a_folders_small_files_are_enough(store: Path) -> None:
    folder = store.parent / "tokenizers" / "gpt2-chinese-cluecorpussmall"
    folder.mkdir(parents=True)
    for name in ("config.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        (folder / name).touch()
    assert tokenizer_path("gpt2-chinese-cluecorpussmall", store=store) == folder


def test_a_folder_is_taken_as_it_is_and_a_name_nobody_knows_is_refused(store: Path, tmp_path: Path) -> None:
    assert tokenizer_path(tmp_path, store=store) == tmp_path
    with pytest.raises(ModelNotFoundError):
        tokenizer_path("nobody", store=store)


# over the network


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    """A server in the place of OpenAI's, and a cache of tiktoken's with nothing in it."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "nothing"))
    monkeypatch.setitem(tokenizer_files.RANK_SHA256, "o200k_base", SHA256)
    with serving(FakeHub()) as fake:
        monkeypatch.setattr(tokenizer_files, "_ADDRESS", f"{fake.url}/encodings/{{name}}.tiktoken")
        yield fake


def test_a_rank_file_is_fetched_once_and_kept_beside_the_store(hub: FakeHub, store: Path) -> None:
    path = rank_file("o200k_base", store=store)
    assert path == store.parent / "tokenizers" / "o200k_base.tiktoken"
    assert path.read_bytes() == CONTENT
    assert rank_file("o200k_base", store=store) == path
    assert [(method, asked) for method, asked, _ in hub.requests] == [
        ("GET", "/encodings/o200k_base.tiktoken")
    ]


def test_a_kept_file_that_was_damaged_is_fetched_anew(hub: FakeHub, store: Path) -> None:
    path = rank_file("o200k_base", store=store)
    path.write_bytes(b"damaged")
    assert rank_file("o200k_base", store=store).read_bytes() == CONTENT
    assert len(hub.requests) == 2


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ({"body": CONTENT[:-1] + b"!"}, r"127\.0\.0\.1.* sent is not o200k_base\.tiktoken"),
        ({"get_status": 404}, "HTTP 404"),
        ({"get_status": 503}, "HTTP 503"),
        ({"cuts": [1000]}, "broke off: 1000 of 3000004 bytes came"),
        ({"is_endless": True}, "more than 16 MB"),
    ],
    ids=["another file", "404", "503", "cut", "endless"],
)
def test_what_is_not_the_rank_file_is_refused_and_leaves_nothing(
    behaviour: dict[str, Any], words: str, hub: FakeHub, store: Path
) -> None:
    for name, value in behaviour.items():
        setattr(hub, name, value)
    with pytest.raises(DownloadError, match=words):
        rank_file("o200k_base", store=store)
    assert not list(store.parent.rglob("*.tiktoken"))
    assert leftovers(store) == []
