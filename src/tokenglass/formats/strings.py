"""String arrays of a model file, kept as the bytes they are: no Python object per token when a file opens.

The file writes each string behind its length, and so does the blob here: nothing is moved, only indexed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

LENGTH_BYTES = 8  # each string stands behind its length, a little-endian uint64


@dataclass(frozen=True, eq=False)
class StringArray:
    """An array of byte strings: `tokens[17]` is `b"the"`. As stored, not checked to be UTF-8.

    blob     | length 0 | string 0 | length 1 | string 1 | ...
    offsets  ^ [0]                 ^ [1]                       ^ [len]
    """

    blob: bytes
    offsets: NDArray[np.int64]  # [len + 1]

    @classmethod
    def of(cls, strings: Sequence[bytes]) -> StringArray:
        """The same array made of strings that are in memory already."""
        lengths = np.array([LENGTH_BYTES + len(raw) for raw in strings], np.int64)
        blob = b"".join(len(raw).to_bytes(LENGTH_BYTES, "little") + raw for raw in strings)
        return cls(blob, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> bytes:
        index = range(len(self))[index]  # IndexError past the end, and negative indices as in a list
        return self.blob[self.offsets[index] + LENGTH_BYTES : self.offsets[index + 1]]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.to_list())

    def to_list(self) -> list[bytes]:
        """All strings as bytes objects: about 0.1 µs each."""
        blob = self.blob
        return [blob[start + LENGTH_BYTES : end] for start, end in pairwise(self.offsets.tolist())]
