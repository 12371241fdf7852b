"""What one step computes: for each sequence that runs, its new ids, where they stand, and the pages that hold
its cache.

A batch of one is the normal case; rows of other sequences change nothing (docs/en/numerics.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tokenglass import kernels


@dataclass(frozen=True)
class Slice:
    """One sequence's share of a step: `ids` stand at positions start, start+1, …; `pages` cover 0 …
    start+len(ids)-1.

    num_outputs: how many of the last rows want logits (0 in the middle of a prompt, 1 to draw the next
    token).
    """

    ids: Sequence[int]
    start: int
    pages: Sequence[int]
    num_outputs: int = 1


@dataclass(frozen=True)
class Batch:
    """The slices of a step; their rows follow one another in this order, and so do the rows of logits."""

    slices: tuple[Slice, ...]

    @property
    def num_rows(self) -> int:
        return sum(len(piece.ids) for piece in self.slices)

    @property
    def num_outputs(self) -> int:
        return sum(piece.num_outputs for piece in self.slices)

    def rows(self, ops: kernels.Kernels = kernels) -> kernels.Batch:
        """The same as arrays for the kernels, one entry a row."""
        lengths = [len(piece.ids) for piece in self.slices]
        table = np.zeros((len(self.slices), max(len(piece.pages) for piece in self.slices)), np.int32)
        outputs: list[int] = []
        end = 0
        for i, piece in enumerate(self.slices):
            table[i, : len(piece.pages)] = piece.pages
            end += len(piece.ids)
            outputs.extend(range(end - piece.num_outputs, end))
        rows: kernels.Batch = ops.Batch(
            np.array([token for piece in self.slices for token in piece.ids], np.int32),
            np.concatenate([np.arange(p.start, p.start + len(p.ids), dtype=np.int32) for p in self.slices]),
            np.repeat(np.arange(len(self.slices), dtype=np.int32), lengths),
            table,
            np.array(outputs, np.int32),
        )
        return rows
