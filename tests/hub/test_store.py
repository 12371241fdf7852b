"""The store's folder, its lock and its workplace."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tokenglass.errors import DownloadError
from tokenglass.hub import model_name, stored_models
from tokenglass.hub.store import disk_errors, is_whole, locked, publish, store_folder, workplace


def no_wait() -> None:
    raise AssertionError("nobody else holds this lock")


def test_store_is_inside_tokenglass_home(tmp_path: Path) -> None:
    assert store_folder({"TOKENGLASS_HOME": str(tmp_path)}) == tmp_path / "models"


def test_relative_and_tilde_homes_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert store_folder({"TOKENGLASS_HOME": "here"}) == tmp_path / "here" / "models"
    assert store_folder({"TOKENGLASS_HOME": "~/glass"}) == tmp_path / "me" / "glass" / "models"


@pytest.mark.parametrize(
    ("platform", "environ", "expected"),
    [
        ("linux", {}, "me/.cache/tokenglass/models"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "me/.cache/tokenglass/models"),
        ("linux", {"TOKENGLASS_HOME": ""}, "me/.cache/tokenglass/models"),
        ("darwin", {}, "me/Library/Caches/tokenglass/models"),
        ("win32", {}, "me/AppData/Local/tokenglass/models"),
    ],
)
def test_store_without_tokenglass_home_is_in_the_platforms_cache(
    platform: str, environ: dict[str, str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "me")
    assert store_folder(environ) == tmp_path / expected


def test_xdg_cache_home_is_honoured(tmp_path: Path) -> None:
    assert store_folder({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "tokenglass" / "models"


def test_account_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(DownloadError, match="TOKENGLASS_HOME"):
        store_folder({})


def test_whole_means_a_file_of_the_exact_length(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"1234")
    assert is_whole(tmp_path / "x", 4)
    assert not is_whole(tmp_path / "x", 5)
    assert not is_whole(tmp_path / "y", 0)
    assert not is_whole(tmp_path, 4096)


def test_only_models_have_names(tmp_path: Path) -> None:
    assert stored_models(tmp_path / "nowhere") == []
    (tmp_path / "b.gguf").write_bytes(b"")
    (tmp_path / "a.gguf").write_bytes(b"")
    (tmp_path / "folder.gguf").mkdir()
    (tmp_path / "notes.txt").write_bytes(b"")
    assert [model_name(path) for path in stored_models(tmp_path)] == ["a", "b"]


def test_second_holder_waits_and_says_so_once(tmp_path: Path) -> None:
    waits: list[str] = []
    is_waiting, has_lock = threading.Event(), threading.Event()

    def on_wait() -> None:
        waits.append("waiting")
        is_waiting.set()

    def second() -> None:
        with locked(tmp_path, "m.gguf", on_wait=on_wait):
            has_lock.set()

    thread = threading.Thread(target=second)
    with locked(tmp_path, "m.gguf", on_wait=no_wait):
        thread.start()
        assert is_waiting.wait(timeout=10)
        assert not has_lock.is_set()
    thread.join(timeout=10)
    assert has_lock.is_set()
    assert waits == ["waiting"]


def test_lock_file_left_by_an_earlier_process_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / ".pulls").mkdir()
    (tmp_path / ".pulls" / "m.gguf.lock").write_text("12345")
    with locked(tmp_path, "m.gguf", on_wait=no_wait):
        pass


def test_different_models_do_not_wait_for_each_other(tmp_path: Path) -> None:
    with locked(tmp_path, "a.gguf", on_wait=no_wait), locked(tmp_path, "b.gguf", on_wait=no_wait):
        pass


def test_workplace_clears_its_own_leftovers_and_no_others(tmp_path: Path) -> None:
    for name in ("m.gguf.dead", "other.gguf.busy"):
        (tmp_path / ".pulls" / name / "temp").mkdir(parents=True)
        (tmp_path / ".pulls" / name / "temp" / "half").write_bytes(b"half")
    with workplace(tmp_path, "m.gguf") as folder:
        assert list(folder.iterdir()) == []
        assert not (tmp_path / ".pulls" / "m.gguf.dead").exists()
    assert not folder.exists()
    assert (tmp_path / ".pulls" / "other.gguf.busy" / "temp" / "half").exists()


def test_publish_replaces_in_one_step(tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"new")
    (tmp_path / "m.gguf").write_bytes(b"old")
    publish(tmp_path / "part", tmp_path / "m.gguf")
    assert os.listdir(tmp_path) == ["m.gguf"]
    assert (tmp_path / "m.gguf").read_bytes() == b"new"


def test_disk_errors_leave_other_errors_alone(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mine"), disk_errors(tmp_path):
        raise ValueError("mine")
