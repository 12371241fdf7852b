"""A bounded position in a mapped model file: every read is held against the bytes that are left.

Used by `header.py`. All it knows of the format are its numbers (little-endian) and its strings (a uint64
length, then UTF-8).
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from tokenglass.errors import ModelFileError

TRUNCATED = "The file seems to be cut short: download it again"

_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")


@dataclass
class Cursor:
    """A position that never moves past the end of `data`. Invariant: 0 <= at <= len(data)."""

    data: mmap.mmap
    path: Path
    at: int = 0

    def fail(self, field: str, problem: str, remedy: str | None = None) -> NoReturn:
        raise ModelFileError(self.path, field, problem, remedy=remedy)

    def take(self, num_bytes: int, field: str) -> bytes:
        left = len(self.data) - self.at
        if num_bytes > left:
            self.fail(field, f"{num_bytes} bytes are needed and {left} are left", TRUNCATED)
        start, self.at = self.at, self.at + num_bytes
        return self.data[start : self.at]

    def u32(self, field: str) -> int:
        value: int = _U32.unpack(self.take(4, field))[0]
        return value

    def u64(self, field: str) -> int:
        value: int = _U64.unpack(self.take(8, field))[0]
        return value

    def count(self, field: str, item_bytes: int, most: int) -> int:
        """A number of items of at least `item_bytes` each: at most `most`, and no more than can follow."""
        count = self.u64(field)
        left = len(self.data) - self.at
        if count * item_bytes > left:
            problem = f"{count} items of at least {item_bytes} bytes do not fit in the {left} bytes left"
            self.fail(field, problem, TRUNCATED)
        if count > most:
            self.fail(field, f"{count} items, and at most {most} are read")
        return count

    def text(self, field: str, most_bytes: int) -> str:
        num_bytes = self.u64(field)
        if num_bytes > most_bytes:
            self.fail(field, f"a string of {num_bytes} bytes, and at most {most_bytes} are read")
        try:
            return self.take(num_bytes, field).decode()
        except UnicodeDecodeError:
            self.fail(field, "the string is not UTF-8")

    def numbers(self, dtype: str | np.dtype[np.generic], length: int, field: str) -> NDArray[np.generic]:
        """`length` numbers as a read-only array of their own."""
        dtype = np.dtype(dtype)
        return np.frombuffer(self.take(length * dtype.itemsize, field), dtype)


def shown(name: str) -> str:
    """A name out of the file, safe to print: no control characters, no screens full of text."""
    return name if name.isprintable() and 0 < len(name) <= 80 else ascii(name[:80])
