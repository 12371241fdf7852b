"""Writing a file or folder so that it is whole or absent: beside its place first, renamed at the end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import IO

from tokenglass.errors import TokenglassError


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to; it gets its name when the block ends well, and is removed when it does not.

    TokenglassError: the folder cannot be written to, or the disk is full; nothing is left behind.
    """
    try:
        with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                os.chmod(file.name, 0o666 & ~_umask())  # a temporary file is its owner's alone
                os.replace(file.name, path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(file.name)
                raise
    except OSError as error:
        raise TokenglassError(f"cannot write {path}: {error.strerror or error}") from None


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A new folder to fill; it gets its name when the block ends well, and is removed when it does not.

    TokenglassError: as for `whole_file`.
    """
    try:
        with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as outer:
            folder = Path(outer) / path.name
            folder.mkdir()
            yield folder
            os.rename(folder, path)
    except OSError as error:
        raise TokenglassError(f"cannot write {path}: {error.strerror or error}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
