"""A pool of KV pages of 16 positions each. A sequence takes what it needs and gives everything back when it
ends.

Pages are not cleared between owners: attention never lets a position beyond a row's own enter its arithmetic
(a test fills free pages with NaN). The page given back last is taken first, so the memory touched stays as
small as the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

PAGE_TOKENS = 16


class PagePool:
    """Invariant: every page is either free or held by exactly one owner.

    on_free: told which pages were given back, for a model that keeps its cache elsewhere.
    """

    def __init__(self, num_pages: int, on_free: Callable[[list[int]], None] = lambda pages: None) -> None:
        self.num_pages = num_pages
        self._on_free = on_free
        self._free = list(range(num_pages - 1, -1, -1))

    @property
    def num_free(self) -> int:
        return len(self._free)

    def take(self, num_pages: int) -> list[int]:
        """`num_pages` pages; ask `num_free` first."""
        assert 0 <= num_pages <= self.num_free, "admission must not promise pages it cannot give"
        return [self._free.pop() for _ in range(num_pages)]

    def give_back(self, pages: Iterable[int]) -> None:
        """Returns pages to the pool."""
        freed = list(pages)
        self._free.extend(reversed(freed))
        self._on_free(freed)

    def check(self, held: Iterable[int]) -> None:
        """Asserts that free pages and the `held` ones are all pages, each once."""
        assert sorted([*self._free, *held]) == list(range(self.num_pages)), "a page is lost or held twice"


def pages_for(num_tokens: int) -> int:
    """Pages that hold `num_tokens` positions."""
    return -(-num_tokens // PAGE_TOKENS)
