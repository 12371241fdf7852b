"""Where rank files and small files of folders are found; nothing here reaches a network."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

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
