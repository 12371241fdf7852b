"""The tokens of one row, from the most likely down (equals by id), sorted only as far as somebody looks.

Temperature has already acted: weights[i] = e^((logit - max) / temperature). Every cut but one keeps a
beginning of this order, so the survivors are a number; `keep_only` is for the one that picks from the middle
(typical).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Scores(Protocol):
    """The logits of one step, [rows, vocab]; `kernels.Logits` is the one the engine uses."""

    @property
    def vocab(self) -> int: ...
    def argmax(self, row: int) -> int: ...
    def top(self, row: int, num: int) -> NDArray[np.int32]: ...
    def weights(self, row: int, temperature: float) -> tuple[NDArray[np.float32], float]: ...
    def survey(
        self, row: int, token_id: int, num: int
    ) -> tuple[float, float, float, int, list[int], list[float]]: ...
    def numpy(self) -> NDArray[np.float32]: ...
    def replaced(self, scores: NDArray[np.float32]) -> Scores: ...


class Candidates:
    """Invariant: the survivors are the first `count` of the order, and `mass` is the sum of their weights."""

    def __init__(self, logits: Scores, row: int, temperature: float) -> None:
        self.weights, self.mass = logits.weights(row, temperature)
        self.temperature = temperature
        self.count = logits.vocab
        self._logits, self._row = logits, row
        self.is_picked = False  # the survivors are no beginning of the order any more
        self._ids = np.empty(0, np.int32)
        self._running = np.empty(0, np.float64)

    def ids(self, num: int) -> NDArray[np.int32]:
        """The first `num` survivors (all, if there are fewer), int32."""
        self._look(min(num, self.count))
        return self._ids[: min(num, self.count)]

    def reaching(self, mass: float) -> int:
        """How many survivors it takes, from the best down, until their weights reach `mass`."""
        num = 64
        while True:
            self._look(min(num, self.count))
            running = self._running[: self.count]
            if running[-1] >= mass or len(running) >= self.count or len(running) < num:
                return min(int(np.searchsorted(running, mass)) + 1, len(running))
            num *= 8

    def probabilities(self, ids: list[int], drawn: int, *, is_ordered: bool) -> list[float]:
        """What the draw is made from: the share of each of these ids, 0 where it did not survive.

        is_ordered: they are the first of the order, with `drawn` behind them where it is none of them.
        """
        shares = [self.weights.item(i) / self.mass for i in ids]
        if self.count == len(self.weights):
            return shares
        if self.is_picked or not is_ordered:
            alive = np.isin(ids, self.ids(self.count)).tolist()
        else:
            alive = [place < self.count or i == drawn for place, i in enumerate(ids)]
        return [share if lives else 0.0 for share, lives in zip(shares, alive, strict=True)]

    def surprisal(self, ids: NDArray[np.int32]) -> NDArray[np.float64]:
        """-log of their weights, float64, without a logarithm, whose last bit differs by machine."""
        z = self._logits.numpy()[self._row]
        best = z[self._logits.argmax(self._row)].astype(np.float64)
        surprisal: NDArray[np.float64] = (best - z[ids].astype(np.float64)) / self.temperature
        return surprisal

    def keep(self, count: int) -> None:
        """The first `count` survive."""
        if count < self.count:
            self._look(count)
            self.count = min(count, len(self._ids))
            self.mass = float(self._running[self.count - 1])

    def keep_only(self, ids: NDArray[np.int32]) -> None:
        """These survive: ids in the order's own order."""
        self._ids, self.count, self.is_picked = ids, len(ids), True
        self._running = np.cumsum(self.weights[ids], dtype=np.float64)
        self.mass = float(self._running[-1])

    def draw(self, point: float) -> int:
        """The token at `point` (0 <= point < 1) of the line where every survivor is as long as its weight."""
        target = point * self.mass
        num = min(self.reaching(np.nextafter(target, np.inf)), self.count)
        return int(self.ids(num)[-1])

    def _look(self, num: int) -> None:
        if num > len(self._ids):
            self._ids = self._logits.top(self._row, num)
            self._running = np.cumsum(self.weights[self._ids], dtype=np.float64)
