"""What one step computes: for each sequence that runs, its new ids, where they stand, and the pages that hold
its cache.

A batch of one is the normal case; rows of other sequences change nothing (docs/en/numerics.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tokenglass import kernels


@dataclass(frozen=True)
class Slice:
    """One sequence's share of a step: `ids` stand at positions start, start+1, …; `pages` cover 0 …
    start+len(ids)-1. The first page is the sequence's alone while it runs: it can serve as its name.

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
        slices = [(piece.ids, piece.start, piece.pages, piece.num_outputs) for piece in self.slices]
        rows: kernels.Batch = ops.Batch.of_slices(slices)
        return rows
