"""A StringArray behaves like a list of byte strings."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenglass.formats.strings import StringArray


def string_array(strings: list[bytes]) -> StringArray:
    ends = np.cumsum([0, *(8 + len(string) for string in strings)])
    return StringArray(b"".join(struct.pack("<Q", len(s)) + s for s in strings), ends.astype(np.int64))


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_it_reads_like_the_list_it_was_made_from(strings: list[bytes]) -> None:
    ours = string_array(strings)
    assert len(ours) == len(strings)
    assert ours.to_list() == list(ours) == strings
    assert [ours[index] for index in range(len(ours))] == strings
    assert [ours[-index] for index in range(1, len(ours) + 1)] == strings[::-1]


@pytest.mark.parametrize("index", [2, -3, 2**70])
def test_an_index_past_the_end_is_an_index_error(index: int) -> None:
    with pytest.raises(IndexError):
        string_array([b"a", b""])[index]
