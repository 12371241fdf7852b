"""The folder that holds model files. A file under its final name is whole: one rename, after all checks.

    models/
      smollm2-135m-instruct-q4_1.gguf             published: checked, synced, renamed
      my-own.gguf                                 put here by the user, found by its name `my-own`
      .pulls/
        smollm2-135m-instruct-q4_1.gguf.lock      empty, never removed; what counts is the system's lock on it
        smollm2-135m-instruct-q4_1.gguf.x8f2k1/   one pull's workplace, removed by that pull or the next

The operating system drops a lock when its process dies, however it dies, so a killed pull blocks nobody.
Functions here let `OSError` pass; `disk_errors`, around a whole pull, makes it a `DownloadError`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tokenglass.errors import DownloadError

LOCK_POLL_S = 0.1
MOVE_REMEDY = "Set TOKENGLASS_HOME to a folder you can write to"
SPACE_REMEDY = "Free some space, or set TOKENGLASS_HOME to a folder on another disk"


def store_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """`$TOKENGLASS_HOME/models`, else `tokenglass/models` in the platform's cache folder. Creates nothing."""
    if home := environ.get("TOKENGLASS_HOME"):
        return Path(os.path.abspath(os.path.expanduser(home))) / "models"
    return _cache_folder(environ) / "tokenglass" / "models"


def is_whole(path: Path, num_bytes: int) -> bool:
    """Whether `path` is a file of exactly this length: the cheap check made at every use."""
    try:
        return path.is_file() and path.stat().st_size == num_bytes
    except OSError:
        return False


def model_names(store: Path) -> list[str]:
    """Names under which the files in the store answer, sorted; empty when there is no store yet."""
    try:
        return sorted(path.stem for path in store.glob("*.gguf") if path.is_file())
    except OSError:
        return []


@contextlib.contextmanager
def disk_errors(store: Path) -> Iterator[None]:
    """Turns an `OSError` inside the block into one `DownloadError` that names the store and the remedy."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DownloadError(
                f"the disk filled up while writing to {store}", remedy=SPACE_REMEDY
            ) from error
        if isinstance(error, FileExistsError | NotADirectoryError):
            reason = "a file is in the way of this folder"
        raise DownloadError(f"cannot write to {store}: {reason}", remedy=MOVE_REMEDY) from error


@contextlib.contextmanager
def locked(store: Path, file_name: str, *, on_wait: Callable[[], None]) -> Iterator[None]:
    """Holds the only lock for pulling `file_name`. If another process has it: one `on_wait()`, then waits."""
    pulls = _pulls_folder(store)
    pulls.mkdir(parents=True, exist_ok=True)
    handle = os.open(pulls / f"{file_name}.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not _try_lock(handle):
            on_wait()
            while not _try_lock(handle):
                time.sleep(LOCK_POLL_S)
        yield
    finally:
        os.close(handle)  # and with it the lock


@contextlib.contextmanager
def workplace(store: Path, file_name: str) -> Iterator[Path]:
    """A fresh folder on the store's own disk, gone afterwards. Needs the lock, for it clears older ones."""
    for leftover in _pulls_folder(store).glob(f"{file_name}.*/"):
        shutil.rmtree(leftover, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{file_name}.", dir=_pulls_folder(store)))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_space(store: Path, needed_bytes: int) -> None:
    """Raises `DownloadError` with both numbers when the store's disk has less free than `needed_bytes`."""
    free_bytes = shutil.disk_usage(store).free
    if free_bytes < needed_bytes:
        raise DownloadError(
            f"not enough space in {store}: {needed_bytes / 1e6:.1f} MB needed, {free_bytes / 1e6:.1f} free",
            remedy=SPACE_REMEDY,
        )


def publish(part: Path, target: Path) -> None:
    """Gives a synced file its final name in one step: after a power cut it is there whole or not at all."""
    os.replace(part, target)
    if sys.platform != "win32":
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _pulls_folder(store: Path) -> Path:
    return store / ".pulls"


def _cache_folder(environ: Mapping[str, str]) -> Path:
    try:
        home = Path.home()
    except RuntimeError as error:
        raise DownloadError(
            "this account has no home folder to keep models in", remedy=MOVE_REMEDY
        ) from error
    if sys.platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    if sys.platform == "darwin":
        return home / "Library" / "Caches"
    xdg = environ.get("XDG_CACHE_HOME", "")
    return Path(xdg) if os.path.isabs(xdg) else home / ".cache"  # the XDG rule: a relative path is ignored


if sys.platform == "win32":
    import msvcrt

    def _try_lock(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True
else:
    import fcntl

    def _try_lock(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
