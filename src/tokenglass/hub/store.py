"""The folder that holds model files. A file under its final name is whole: one rename, after all checks.

    models/
      smollm2-135m-instruct-q4_1.gguf             published: checked, synced, renamed
      bert-base-chinese/                          a model of several files: the folder is renamed as one
      my-own.gguf                                 put here by the user, found by its name `my-own`
      .pulls/
        smollm2-135m-instruct-q4_1.gguf.lock      empty, never removed; what counts is the system's lock on it
        smollm2-135m-instruct-q4_1.gguf.x8f2k1/   one pull's workplace, removed by that pull or the next
        smollm2-135m-instruct-q4_1.gguf.json      where the files came from, their lengths and checksums
        partial.qwen3-0.6b-q8_0.gguf/             what a download that broke off had brought, by checksum

The operating system drops a lock when its process dies, however it dies, so a killed pull blocks nobody.
Functions here let `OSError` pass; `disk_errors`, around a whole pull, makes it a `DownloadError`.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
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
    """Gives a synced file or folder its final name in one step: after a power cut it is whole or not there.

    An older folder steps aside into the workplace first: no system replaces a folder with things in it.
    """
    if part.is_dir() and target.is_dir():
        os.replace(target, part.parent / "old")
    os.replace(part, target)
    _sync_folder(target.parent)


def partial_folder(store: Path, name: str) -> Path:
    """Where an unfinished download of `name` waits to be continued; it may not exist."""
    return _pulls_folder(store) / f"partial.{name}"


def sha256_of(path: Path) -> str:
    """The file's SHA-256 in hexadecimal; about 0.1 s for 100 MB."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- receipts: what a pull brought, so that it can be checked again without a network ---


@dataclass(frozen=True)
class Receipt:
    """Where a stored model came from (`source`, `address`), and `files`: name -> (length, sha256)."""

    source: str
    address: str
    files: dict[str, tuple[int, str]]


def write_receipt(store: Path, name: str, receipt: Receipt) -> None:
    """Keeps the receipt of the stored model `name`; needs its lock."""
    path = _pulls_folder(store) / f"{name}.json"
    draft = path.with_suffix(".json.new")
    draft.write_text(json.dumps(asdict(receipt)), encoding="utf-8")
    os.replace(draft, path)


def read_receipt(store: Path, name: str) -> Receipt | None:
    """The receipt of `name`; None when there is none, or none that can be read."""
    try:
        data = json.loads((_pulls_folder(store) / f"{name}.json").read_bytes())
        files = {str(key): (int(value[0]), str(value[1])) for key, value in data["files"].items()}
        return Receipt(str(data["source"]), str(data["address"]), files)
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return None


def remove_stored(store: Path, name: str) -> None:
    """Removes the stored file or folder `name`, what is left of its pulls, and nothing else.

    A link is removed, not what it points to. Needs the lock of `name`. OSError: it could not be removed.
    """
    assert name == os.path.basename(name)
    assert name not in ("", ".", "..", ".pulls")
    target = store / name
    if target.is_dir() and not target.is_symlink():
        doomed = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=_pulls_folder(store)))
        os.replace(target, doomed / "old")  # gone in one step; then its files
        shutil.rmtree(doomed)
    else:
        target.unlink(missing_ok=True)
    shutil.rmtree(partial_folder(store, name), ignore_errors=True)
    (_pulls_folder(store) / f"{name}.json").unlink(missing_ok=True)


def _sync_folder(path: Path) -> None:
    if sys.platform != "win32":
        folder = os.open(path, os.O_RDONLY)
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
