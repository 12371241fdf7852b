"""The header of a model's file alone: vocabulary, merges and chat template without the weights behind them.

A GGUF begins with its metadata, so the connection is closed as soon as the header is whole: megabytes instead
of gigabytes. What came is kept in a file of the model's full length in which the rest was never written (a
hole takes no room on disk), so that every offset in the header stays true. A part has no checksum: the length
is what the hub declares, and the header must be consistent. Nothing can be run from such a file, and it lies
in a folder of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from tokenglass.errors import DownloadError, ModelFileError
from tokenglass.formats import GGUFFile
from tokenglass.hub.catalogue import CATALOGUE, Entry, find
from tokenglass.hub.lookup import resolve
from tokenglass.hub.progress import Progress, Stage, ignore
from tokenglass.hub.store import disk_errors, locked, publish, store_folder, workplace
from tokenglass.hub.stored import is_stored

FIRST_BYTES = 8 << 20  # tried first, then twice as many each time; a vocabulary of 150,000 tokens takes 6 MB
MOST_BYTES = 128 << 20


def header_file(
    name_or_path: str | os.PathLike[str],
    *,
    progress: Callable[[Progress], None] = ignore,
    store: Path | None = None,
    catalogue: Sequence[Entry] = CATALOGUE,
) -> Path:
    """A GGUF whose header can be read: the model's own where it is here, else its header, fetched once.

    Raises what `resolve` raises. A model that cannot run yet can still be read.
    """
    wanted = os.fspath(name_or_path)
    store = store or store_folder()
    entry = None if os.path.isfile(wanted) else find(wanted, catalogue)
    if entry is None or entry.is_folder or entry.wheel is not None:
        return resolve(wanted, progress=progress, store=store, catalogue=catalogue)
    if is_stored(entry, store):
        return store / entry.stored_as
    target = store.parent / "tokenizers" / entry.stored_as
    return target if target.is_file() else _fetch_header(entry, store, target, progress)


def _fetch_header(entry: Entry, store: Path, target: Path, progress: Callable[[Progress], None]) -> Path:
    from tokenglass.hub.fetch import is_offline
    from tokenglass.hub.sources import sources_for
    from tokenglass.hub.web import UnreachableError

    if is_offline():
        raise DownloadError(f"{entry.name} is not here and downloads are switched off")

    def on_wait() -> None:
        progress(Progress(entry.name, Stage.WAITING))

    failure: UnreachableError | None = None
    with disk_errors(store), locked(store, entry.stored_as, on_wait=on_wait):
        if target.is_file():
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        for source in sources_for(entry):
            try:
                with workplace(store, entry.stored_as) as folder:
                    remote = source.remote(entry, entry.files[0])
                    part = folder / entry.stored_as
                    _read_header(remote.url, remote.num_bytes, remote.token, part, entry.name, progress)
                    publish(part, target)
                return target
            except UnreachableError as error:
                failure = failure or error
    raise failure or DownloadError(f"{entry.name} has no source with a header to read")


def _read_header(
    url: str, num_bytes: int, token: str | None, part: Path, name: str, progress: Callable[[Progress], None]
) -> None:
    """Reads on until the header is whole. DownloadError: it is broken, or longer than we read."""
    from tokenglass.hub.web import UnreachableError, ask

    wanted = FIRST_BYTES
    with ask(url, token=token) as answer, part.open("wb") as file:
        while True:
            while file.tell() < min(wanted, num_bytes):
                piece = answer.read(min(1 << 20, num_bytes - file.tell()))
                if not piece:
                    raise UnreachableError(f"the connection to {answer.host} was cut in the header")
                file.write(piece)
                progress(Progress(name, Stage.DOWNLOADING, file.tell(), min(wanted, num_bytes)))
            file.flush()
            os.truncate(part, num_bytes)
            try:
                GGUFFile.open(part).close()
            except ModelFileError as error:
                if wanted >= min(MOST_BYTES, num_bytes):
                    raise DownloadError(
                        f"what {answer.host} sent has no GGUF header we can read: {error.what}"
                    ) from error
            else:
                os.fsync(file.fileno())
                return
            wanted *= 2
