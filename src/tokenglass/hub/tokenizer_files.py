"""Where the tokenizer of a named model lies: only the files it needs, fetched once, never the weights.

    a model of the catalogue that is a folder   its small files, in the folder `tokenizers` beside the store
    a model of the catalogue that is a GGUF     the header of that file (`headers.py`)
    an encoding of tiktoken's (`o200k_base`)    tiktoken's own cache, else ours, else OpenAI's server

tiktoken keeps a file under the SHA-1 of its address, in TIKTOKEN_CACHE_DIR, DATA_GYM_CACHE_DIR or in the
system's folder for temporary files (https://github.com/openai/tiktoken, load.py).
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from tokenglass.errors import DownloadError
from tokenglass.hub.catalogue import CATALOGUE, find
from tokenglass.hub.headers import header_file
from tokenglass.hub.progress import Progress, Stage, ignore
from tokenglass.hub.store import disk_errors, locked, publish, sha256_of, store_folder, workplace
from tokenglass.hub.stored import is_stored

RANK_SHA256 = {
    "r50k_base": "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    "p50k_base": "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
MOST_BYTES = 16 << 20
_ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
_WEIGHTS = (".bin", ".safetensors", ".gguf")


def tokenizer_path(
    name_or_path: str | os.PathLike[str],
    *,
    progress: Callable[[Progress], None] = ignore,
    store: Path | None = None,
) -> Path:
    """A file or folder with the tokenizer of a model: a path as it is, a name fetched where it is not here.

    Raises what `header_file` raises; DownloadError: the name is known, but its files are not to be had.
    """
    wanted = os.fspath(name_or_path)
    store = store or store_folder()
    entry = None if os.path.exists(wanted) else find(wanted, CATALOGUE)
    if os.path.isdir(wanted):
        return Path(wanted)
    if entry is None or not entry.is_folder:
        return header_file(wanted, progress=progress, store=store)
    small = replace(entry, files=tuple(file for file in entry.files if not file.name.endswith(_WEIGHTS)))
    for place in (store, store.parent / "tokenizers"):
        if is_stored(small, place):
            return place / entry.stored_as
    from tokenglass.hub.fetch import fetch

    return fetch(small, store.parent / "tokenizers", progress)


def rank_file(
    name: str,
    *,
    progress: Callable[[Progress], None] = ignore,
    store: Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Path:
    """The file of a tiktoken encoding, its SHA-256 checked: `rank_file("o200k_base")`.

    DownloadError: it is in no cache and cannot be fetched.
    """
    store = store or store_folder()
    address = _ADDRESS.format(name=name)
    target = store.parent / "tokenizers" / f"{name}.tiktoken"
    for path in (*_caches(address, environ), target):
        if path.is_file() and sha256_of(path) == RANK_SHA256[name]:
            return path
    from tokenglass.hub.fetch import is_offline
    from tokenglass.hub.web import ask

    remedy = f"Give the path of the file: -m FOLDER/{name}.tiktoken"
    if is_offline(environ):
        raise DownloadError(f"{name}.tiktoken is not here and downloads are switched off", remedy=remedy)

    def on_wait() -> None:
        progress(Progress(name, Stage.WAITING))

    with disk_errors(store), locked(store, target.name, on_wait=on_wait):
        with ask(address) as answer:
            raw = answer.read_all(MOST_BYTES)
        if hashlib.sha256(raw).hexdigest() != RANK_SHA256[name]:
            raise DownloadError(f"what {answer.host} sent is not {name}.tiktoken", remedy=remedy)
        target.parent.mkdir(parents=True, exist_ok=True)
        with workplace(store, target.name) as folder:
            part = folder / target.name
            part.write_bytes(raw)
            publish(part, target)
    return target


def _caches(address: str, environ: Mapping[str, str]) -> Iterator[Path]:
    """Where tiktoken would keep what it fetched from there."""
    default = os.path.join(tempfile.gettempdir(), "data-gym-cache")
    folder = environ.get("TIKTOKEN_CACHE_DIR", environ.get("DATA_GYM_CACHE_DIR", default))
    if folder:
        yield Path(folder) / hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()
