from __future__ import annotations

import random

import pytest

from tokenglass.cache import PagePool
from tokenglass.cache.pages import pages_for


def test_every_page_is_free_or_held_once() -> None:
    rng = random.Random(3)
    pool = PagePool(40)
    held: list[list[int]] = []
    for _ in range(500):
        if rng.random() < 0.5 and held:
            pool.give_back(held.pop(rng.randrange(len(held))))
        else:
            held.append(pool.take(rng.randint(0, pool.num_free)))
        pool.check(page for pages in held for page in pages)


def test_the_pages_given_back_last_are_taken_first() -> None:
    pool = PagePool(8)
    first = pool.take(3)
    pool.give_back(first)
    assert pool.take(3) == first


def test_a_pool_never_promises_what_it_has_not() -> None:
    pool = PagePool(2)
    with pytest.raises(AssertionError):
        pool.take(3)
    pool.take(2)
    with pytest.raises(AssertionError):
        pool.check([0])


@pytest.mark.parametrize(("tokens", "pages"), [(0, 0), (1, 1), (16, 1), (17, 2), (8192, 512)])
def test_pages_for(tokens: int, pages: int) -> None:
    assert pages_for(tokens) == pages
