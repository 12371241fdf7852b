"""A file mapped into memory, read-only, and views into it. Whoever maps it has checked its offsets first.

Not covered: a file that another program shortens while it is mapped. The system then ends the process
(SIGBUS), as for every mapped file; a store should replace files, never shorten them.
"""

from __future__ import annotations

import mmap
import stat
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tokenglass.errors import ModelFileError


class MappedFile:
    """The bytes of one file. ModelFileError: it cannot be mapped, in one clear line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._data: mmap.mmap | None = _map(path)

    @property
    def data(self) -> mmap.mmap:
        if self._data is None:
            raise ValueError(f"{self.path.name} is closed")
        return self._data

    def view(self, offset: int, num_bytes: int, *, aligned_to: int = 1) -> NDArray[np.uint8]:
        """uint8 [num_bytes], read-only; valid as long as it lives, even when the file is closed.

        No copy, except where items of `aligned_to` bytes would lie across the machine's words.
        """
        if not num_bytes:
            return np.empty(0, np.uint8)
        view = np.frombuffer(self.data, np.uint8, num_bytes, offset)
        if offset % aligned_to:
            view = view.copy()
            view.flags.writeable = False
        return view

    def release(self, offset: int, num_bytes: int) -> None:
        """Drop the whole pages of these bytes from this process; they are read again when touched."""
        start = -(-offset // mmap.PAGESIZE) * mmap.PAGESIZE
        end = (offset + num_bytes) // mmap.PAGESIZE * mmap.PAGESIZE
        advice = getattr(mmap, "MADV_DONTNEED", None)
        if advice is not None and end > start:
            self.data.madvise(advice, start, end - start)

    def close(self) -> None:
        """Give the mapping back; if views still live, the last of them does it."""
        if self._data is not None:
            with suppress(BufferError):
                self._data.close()
            self._data = None


def _map(path: Path) -> mmap.mmap:
    try:
        mode = path.stat().st_mode  # asked first: opening a pipe would wait for its other end
        if stat.S_ISDIR(mode):
            raise ModelFileError(path, "file", "this is a folder", remedy="Name the .gguf file inside it")
        if not stat.S_ISREG(mode):
            raise ModelFileError(path, "file", "this is a device or a pipe, not a file")
        with path.open("rb") as file:
            if not file.seek(0, 2):
                raise ModelFileError(path, "file", "the file is empty", remedy="Download it again")
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte
        raise ModelFileError(path, "file", getattr(error, "strerror", None) or str(error)) from None
