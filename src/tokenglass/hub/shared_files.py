"""What a small hub (`share.py`) offers of the local store: files under the names of repositories.

Catalogue models stand under their hub's repository, whole repositories under their own, and every stored
model under `local/{its name}` too. `bert-base-chinese` without an owner is found, as on Hugging Face.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenglass.hub.catalogue import CATALOGUE, Entry, is_plain, repository_name
from tokenglass.hub.store import sha256_of

LOCAL_OWNER = "local"


@dataclass(frozen=True)
class SharedFile:
    """A file in the store that may be served, with the length it had when the table was made."""

    repository: str
    name: str
    path: Path
    num_bytes: int


def shared_files(
    store: Path, *, only: Collection[str] = (), catalogue: Sequence[Entry] = CATALOGUE
) -> list[SharedFile]:
    """What the store offers, sorted: regular files under plain names, no links and no hidden ones.

    `only`: names of the stored files and folders to offer, all when empty.
    """
    files = []
    for path in sorted(store.glob("*")):
        if not is_plain(path.name) or path.is_symlink() or (only and path.name not in only):
            continue
        entry = next((entry for entry in catalogue if entry.stored_as == path.name), None)
        if path.is_dir():
            inside = [(item, item.name) for item in sorted(path.glob("*"))]
        else:
            inside = [(path, path.name)] if path.suffix == ".gguf" else []
        for item, name in inside:
            if not is_plain(name) or item.is_symlink() or not item.is_file():
                continue
            num_bytes = item.stat().st_size
            files.append(
                SharedFile(f"{LOCAL_OWNER}/{path.name.removesuffix('.gguf')}", name, item, num_bytes)
            )
            in_hub = entry.files[0].name if entry and not entry.is_folder else name
            if hub := entry.hub if entry else repository_name(path.name):
                files.append(SharedFile(hub, in_hub, item, num_bytes))
    return sorted(files, key=lambda file: (file.repository, file.name))


class Checksums:
    """sha256 of files, computed once for each state of a file (its length and time of change)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[Path, int, int], str] = {}

    def of(self, path: Path) -> str:
        """The file's sha256; whoever asks for another file waits meanwhile."""
        status = path.stat()
        key = (path, status.st_size, status.st_mtime_ns)
        with self._lock:
            if key not in self._known:
                self._known[key] = sha256_of(path)
            return self._known[key]


def with_owner(parts: list[str], files: Sequence[SharedFile]) -> list[str]:
    """A path that names a repository without its owner, as for old models, with the one owner there is."""
    at = 3 if parts[:3] == ["", "api", "models"] else 1
    if len(parts) <= at or parts[at + 1 : at + 2] not in ([], ["resolve"], ["tree"], ["revision"]):
        return parts
    repositories = {tuple(file.repository.split("/")) for file in files}
    owners = [owner for owner, name in repositories if name == parts[at] and owner != LOCAL_OWNER]
    return [*parts[:at], *owners, *parts[at:]] if len(owners) == 1 else parts


def commit_of(files: Sequence[SharedFile]) -> str:
    """A stand-in for a repository's commit: another one when a file changes."""
    state = [(file.name, file.num_bytes, file.path.stat().st_mtime_ns) for file in files]
    return hashlib.sha1(repr(state).encode(), usedforsecurity=False).hexdigest()
