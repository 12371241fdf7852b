"""From what a user types to a model file: a path, a name in the catalogue, or a file in the store.

Start reading here. `resolve` fetches only what is missing; `pull` also checks every byte of what is there.
What is known by name: `catalogue.py`. How it is fetched: `fetch.py`. How it is kept: `store.py`.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from tokenglass.errors import ModelNotFoundError, UsageError
from tokenglass.formats import is_folder_model
from tokenglass.hub.catalogue import CATALOGUE, Entry, find, stored_name, unlisted
from tokenglass.hub.progress import Progress, Stage, ignore
from tokenglass.hub.store import (
    disk_errors,
    locked,
    partial_folder,
    read_receipt,
    remove_stored,
    store_folder,
)
from tokenglass.hub.stored import is_intact, is_stored, model_name, stored_models, stored_path


def resolve(
    name_or_path: str | os.PathLike[str],
    *,
    progress: Callable[[Progress], None] = ignore,
    store: Path | None = None,
    catalogue: Sequence[Entry] = CATALOGUE,
) -> Path:
    """The model file for a path or a name: `resolve("smollm2")`, `resolve("my-own")`, `resolve("a/b.gguf")`.

    An existing file wins, or a folder with a config.json; then the catalogue, pulling what is missing; then
    `<name>.gguf`, a folder or a pulled `OWNER/NAME` in the store. What cannot run is not pulled here, but
    what is stored is found. Raises `ModelNotFoundError`, `UsageError` for a model that cannot run yet,
    `DownloadError` when a pull fails.
    """
    wanted = os.fspath(name_or_path)
    path = Path(wanted).expanduser() if wanted.startswith("~") else Path(wanted)
    if os.path.isfile(path) or is_folder_model(path):
        return path if path.name else path.resolve()
    if _is_path(wanted) and stored_name(wanted) is None:
        raise _no_such_file(wanted, path)
    store = store or store_folder()
    if entry := find(wanted, catalogue):
        if entry.obstacle and (entry.is_folder or not is_stored(entry, store)):
            pull_hint = f"It can still be fetched: tokenglass models pull {entry.name}"
            raise UsageError(f"{entry.name} cannot run: {entry.obstacle}", remedy=pull_hint)
        if is_stored(entry, store):
            return store / entry.stored_as
        from tokenglass.hub.fetch import fetch  # here, for HTTP and pip take longer to load than a header

        return fetch(entry, store, progress)
    stored = stored_path(wanted, store=store, catalogue=catalogue)
    if stored is not None and (stored.is_file() or is_folder_model(stored)):
        return stored
    if _is_path(wanted):
        raise _no_such_file(wanted, path)
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

    `name` is a name in the catalogue, or on the hub `OWNER/NAME` or `OWNER/NAME/FILE.gguf`; `source` one of
    `sources.SOURCES`. Raises `ModelNotFoundError` for another name, `ParameterError`, and `DownloadError`.
    """
    store = store or store_folder()
    entry = find(name, catalogue) or _on_the_hub(name, store, catalogue)
    if entry is None and stored_name(name):
        from tokenglass.hub.repository import repository_entry

        entry = repository_entry(name, store, source=source)
    if entry is None:
        raise _unknown_name(name, store, catalogue)
    with disk_errors(store):
        if is_intact(entry, store):
            return store / entry.stored_as
    from tokenglass.hub.fetch import fetch

    return fetch(entry, store, progress, source=source)


def remove(
    name: str,
    *,
    progress: Callable[[Progress], None] = ignore,
    store: Path | None = None,
    catalogue: Sequence[Entry] = CATALOGUE,
) -> bool:
    """Removes a model by its name from the store, with what a broken-off pull has left of it.

    Nothing outside the store is touched: a link is removed, not what it points to. Whether there was
    anything. ModelNotFoundError: the name is neither in the catalogue nor in the store; DownloadError.
    """
    store = store or store_folder()
    entry = find(name, catalogue)
    path = stored_path(name, store=store, catalogue=catalogue)
    if entry is None and path is None:
        raise _unknown_name(name, store, catalogue)
    stored_as = entry.stored_as if entry else path.name if path else name
    if not os.path.lexists(store / stored_as) and not partial_folder(store, stored_as).exists():
        return False

    def on_wait() -> None:
        progress(Progress(name, Stage.WAITING))

    with disk_errors(store), locked(store, stored_as, on_wait=on_wait):
        remove_stored(store, stored_as)
    return True


def _on_the_hub(words: str, store: Path, catalogue: Sequence[Entry]) -> Entry | None:
    """The entry for `OWNER/REPOSITORY/FILE.gguf`. UsageError: its place in the store is another model's."""
    entry = unlisted(words)
    if entry is None:
        return None
    for known in catalogue:
        if not known.is_folder and (known.hub, known.files[0].name) == (entry.hub, entry.files[0].name):
            return known
    reserved = {known.stored_as.casefold(): known.name for known in catalogue}
    if owner := reserved.get(entry.stored_as.casefold()):
        raise UsageError(
            f"{entry.stored_as} is the place of {owner} in the store", remedy="Use -m with a path"
        )
    receipt = read_receipt(store, entry.stored_as)
    if is_stored(entry, store) and not (receipt and receipt.address.endswith(f"/{entry.hub}")):
        remedy = f"Remove it first: tokenglass models rm {entry.name}"
        raise UsageError(f"{entry.stored_as} is in the store already, from elsewhere", remedy=remedy)
    return entry


def _is_path(wanted: str) -> bool:
    return (
        any(mark in wanted for mark in ("/", os.sep, "\0")) or wanted.startswith(("~", ".")) or wanted == ""
    )


def _no_such_file(wanted: str, path: Path) -> ModelNotFoundError:
    if os.path.isdir(path) and wanted:
        what = f"{wanted!r} is a folder without a config.json"
    elif os.path.exists(path) and wanted:
        what = f"{wanted!r} is not a regular file"
    else:
        what = f"there is no file {wanted!r}"
    remedy = "Give the path of a .gguf file or of a model's folder, or a name without slashes"
    if stored_name(wanted) and not wanted.endswith(".gguf"):
        remedy = f"For a model on the hub: tokenglass models pull {wanted}"
    return ModelNotFoundError(what, remedy=remedy)


def _unknown_name(wanted: str, store: Path, catalogue: Sequence[Entry]) -> ModelNotFoundError:
    reserved = {entry.stored_as for entry in catalogue}
    own = [model_name(path) for path in stored_models(store) if path.name not in reserved]
    known = [entry.name for entry in catalogue] + own
    aliases = {alias: entry.name for entry in catalogue for alias in entry.aliases}
    near = difflib.get_close_matches(wanted.lower(), [*known, *aliases], n=3, cutoff=0.6)
    if wanted.endswith(".gguf") and not near:
        return _no_such_file(wanted, Path(wanted))
    remedy = f"Known models: {', '.join(known)}"
    if near:
        remedy = f"Did you mean {' or '.join(near)}? {remedy}"
    return ModelNotFoundError(
        f"no model is called {wanted!r}", remedy=remedy + ". A path to a .gguf file or a folder works too"
    )
