"""One file over HTTP into one part file: resumed where it broke off, bounded in length, checked at the end.

The part is named by its checksum, so that what is continued is the same file. Nothing is ever written past
the declared length. How the file is described: `sources.py`; the requests themselves: `web.py`.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from tokenglass.errors import DownloadError
from tokenglass.hub.sources import Remote, host_of
from tokenglass.hub.web import PROXY_REMEDY, Answer, UnreachableError, ask

CHUNK_BYTES = 1 << 20
TRIES = 3  # in a row without a byte; whoever still sends something is asked again
MAX_TRIES = 50
PAUSE_S = 0.5


class WrongFileError(DownloadError):
    """What came is not what was declared: nothing of it may be kept."""


def download(remote: Remote, part: Path, *, on_bytes: Callable[[int], None]) -> str:
    """Completes `part`, synced to disk, and returns its sha256. `on_bytes(n)`: it holds n bytes now.

    UnreachableError: it broke off, and `part` keeps what came. WrongFileError: what came is not the file, and
    `part` is gone. DownloadError: the server refuses.
    """
    num_idle = 0
    for _ in range(MAX_TRIES):
        before = part.stat().st_size if part.exists() else 0
        try:
            return _attempt(remote, part, on_bytes)
        except UnreachableError as error:
            num_idle = 0 if part.exists() and part.stat().st_size > before else num_idle + 1
            if num_idle == TRIES:
                raise
            failure = error
            time.sleep(PAUSE_S * num_idle)
        except WrongFileError:
            part.unlink(missing_ok=True)
            raise
    raise failure


def _attempt(remote: Remote, part: Path, on_bytes: Callable[[int], None]) -> str:
    hashes = [remote.checksum.hasher(remote.num_bytes), hashlib.sha256()]
    with part.open("a+b") as file:
        have = _hash_part(file, remote.num_bytes, hashes)
        on_bytes(have)
        if have < remote.num_bytes:
            headers = {"Range": f"bytes={have}-"} if have else {}
            with ask(remote.url, headers=headers, token=remote.token) as answer:
                if have and not _continues(answer, have, remote.num_bytes):
                    file.truncate(0)
                    have = 0
                    hashes = [remote.checksum.hasher(remote.num_bytes), hashlib.sha256()]
                _check_head(answer, remote, have)
                for piece in _pieces(answer, remote.num_bytes, have):
                    file.write(piece)
                    have += len(piece)
                    for running in hashes:
                        running.update(piece)
                    on_bytes(have)
        file.flush()
        os.fsync(file.fileno())
    if hashes[0].hexdigest() != remote.checksum.hexadecimal:
        raise WrongFileError(
            f"what {host_of(remote.url)} sent is not the file it declares: {remote.checksum.kind} "
            f"{hashes[0].hexdigest()}, expected {remote.checksum.hexadecimal}; it was thrown away",
            remedy="Try again, or take another source (--source)",
        )
    return hashes[1].hexdigest()


def _hash_part(file: BinaryIO, num_bytes: int, hashes: list[hashlib._Hash]) -> int:
    """Feeds what is there to the hashes and returns its length; a part that is too long starts anew."""
    file.seek(0, os.SEEK_END)
    have = file.tell()
    if have > num_bytes:
        file.truncate(0)
        return 0
    file.seek(0)
    while piece := file.read(CHUNK_BYTES):
        for running in hashes:
            running.update(piece)
    return have


def _continues(answer: Answer, have: int, num_bytes: int) -> bool:
    """Whether the answer goes on where the part ends. A server without ranges sends the whole: start anew."""
    if answer.status == 206 and answer.header("Content-Range") == f"bytes {have}-{num_bytes - 1}/{num_bytes}":
        return True
    if answer.status == 200:
        return False
    raise WrongFileError(
        f"{answer.host} was asked for the rest of a file and answers with something else",
        remedy="Run the command again: it starts from the beginning",
    )


def _check_head(answer: Answer, remote: Remote, have: int) -> None:
    """Refuses before the first byte what the headers already show to be wrong."""
    if answer.header("Content-Encoding") not in ("", "identity"):
        raise DownloadError(f"{answer.host} sends the file packed, which was not asked for")
    kind = answer.header("Content-Type").lower()
    if kind.startswith("text/html") and not urlsplit(remote.url).path.endswith(".html"):
        raise DownloadError(
            f"{answer.host} sends a web page instead of the file",
            remedy="Perhaps this network asks you to log in first",
        )
    length = answer.header("Content-Length")
    if length and length != str(remote.num_bytes - have):
        raise DownloadError(
            f"{answer.host} wants to send {length[:20]} bytes where {remote.num_bytes - have} are declared",
            remedy="Try again, or take another source (--source)",
        )


def _pieces(answer: Answer, num_bytes: int, have: int) -> Iterator[bytes]:
    """The body, and not a byte more than is missing. UnreachableError: it ends too early."""
    while have < num_bytes:
        piece = answer.read(min(CHUNK_BYTES, num_bytes - have))
        if not piece:
            raise UnreachableError(
                f"the connection to {answer.host} was cut after {have / 1e6:.1f} of {num_bytes / 1e6:.1f} MB",
                remedy=PROXY_REMEDY,
            )
        have += len(piece)
        yield piece
