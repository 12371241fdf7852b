"""What the store holds of which model; nothing here reaches a network or changes a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tokenglass.formats import is_folder_model
from tokenglass.hub.catalogue import CATALOGUE, Entry, find, is_plain, repository_name, stored_name
from tokenglass.hub.store import is_whole, read_receipt, sha256_of, store_folder


def is_stored(entry: Entry, store: Path) -> bool:
    """Whether the store has this model, by names and lengths alone: the cheap check made at every use."""
    if not entry.is_folder:
        (file,) = entry.files
        target = store / entry.stored_as
        return target.is_file() if file.num_bytes is None else is_whole(target, file.num_bytes)
    return all((store / entry.stored_as / file.name).is_file() for file in entry.files)


def is_intact(entry: Entry, store: Path) -> bool:
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


def stored_path(
    name: str, *, store: Path | None = None, catalogue: Sequence[Entry] = CATALOGUE
) -> Path | None:
    """Where the store keeps `name`: a file or a folder; None when it has none. Nothing is fetched."""
    store = store or store_folder()
    if entry := find(name, catalogue):
        return store / entry.stored_as if is_stored(entry, store) else None
    for file_name in (stored_name(name) or name, f"{name}.gguf"):
        path = store / file_name
        if is_plain(file_name) and (path.is_dir() or (path.suffix == ".gguf" and path.is_file())):
            return path
    return None


def stored_models(store: Path) -> list[Path]:
    """Every GGUF file and every model's folder in the store, sorted; none when there is no store yet."""
    try:
        paths = sorted(store.glob("*"))
        return [p for p in paths if is_folder_model(p) or (p.suffix == ".gguf" and p.is_file())]
    except OSError:
        return []


def bytes_of(path: Path) -> int:
    """Length of a file, or of all files of a folder together."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def model_name(path: Path) -> str:
    """What a model at `path` is called: `OWNER/NAME` of a pulled repository, else its folder or file."""
    return repository_name(path.name) or path.name if path.is_dir() else path.stem
