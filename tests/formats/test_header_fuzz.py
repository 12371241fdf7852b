"""Damaged files by the hundred: cut at every byte, changed at random, changed field by field."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.hostile import F32, NUM_DATA_BYTES, Q8_0, Open
from tests.support.tiny_gguf import ARRAY, INT32, STRING, UINT32, gguf_bytes
from tokenglass.errors import ModelFileError
from tokenglass.formats import GGUFFile, StringArray

pytestmark = pytest.mark.filterwarnings("error")


def small_file() -> bytes:
    """Every kind of value and a few tensors, in about 1.3 kB; the last tensor ends where the file ends."""
    metadata = {
        "general.architecture": "llama",
        "general.alignment": 32,
        "b": True,
        "f": 1.5,
        "i64": np.int64(-1),
        "numbers": np.arange(5, dtype=np.int16),
        "flags": np.array([True, False]),
        "strings": ["a", "", "你好", b"\xff"],
    }
    rng = np.random.default_rng(0)
    one, two = rng.standard_normal((2, 2, 32), np.float32)
    return gguf_bytes(metadata, {"one": ("Q8_0", one), "two": ("F16", two), "three": ("F32", two)})


def read_everything(file: GGUFFile) -> None:
    for value in file.metadata.values():
        if isinstance(value, StringArray):
            assert len(value.to_list()) == len(value)
        assert len(repr(value)) < 10_000
    for name, info in file.tensors.items():
        assert len(file.raw(name)) == info.num_bytes
        if info.type.is_supported:
            assert file.floats(name).shape == info.shape
        file.release(name)


def opens_or_is_refused(open_bytes: Open, content: bytes) -> bool:
    try:
        file = open_bytes(content)
    except ModelFileError:
        return False
    with file:
        read_everything(file)
    return True


def test_a_file_cut_at_any_byte_is_refused(open_bytes: Open) -> None:
    content = small_file()
    assert opens_or_is_refused(open_bytes, content)
    for length in range(len(content)):
        with pytest.raises(ModelFileError, match=r"^model\.gguf: "):
            open_bytes(content[:length])


INTERESTING = [
    0,
    1,
    2,
    7,
    8,
    31,
    33,
    255,
    2**16,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**32,
    2**42 + 1,
    2**60,
    2**63,
    2**64 - 1,
]


@pytest.mark.parametrize("num_files", [300, pytest.param(20_000, marks=pytest.mark.slow)])
def test_bytes_changed_at_random_never_crash(open_bytes: Open, num_files: int) -> None:
    random_source = random.Random(0)
    content = small_file()
    header_len = content.index(b"three") + 48
    outcomes = set()
    for _ in range(num_files):
        mutated = bytearray(content)
        for _ in range(random_source.choice([1, 1, 2, 5])):
            at = random_source.randrange(4, header_len)
            if random_source.random() < 0.5:
                mutated[at] = random_source.randrange(256)
            else:
                width = random_source.choice([4, 8])
                value = random_source.choice(INTERESTING) % 256**width
                mutated[at : at + width] = value.to_bytes(width, "little")
        outcomes.add(opens_or_is_refused(open_bytes, bytes(mutated)))
    assert outcomes == {True, False}


@pytest.mark.parametrize("num_files", [300, pytest.param(20_000, marks=pytest.mark.slow)])
def test_fields_changed_dropped_doubled_or_swapped_never_crash(open_bytes: Open, num_files: int) -> None:
    random_source = random.Random(1)
    outcomes = set()
    for _ in range(num_files):
        fields = header_fields()
        for _ in range(random_source.choice([1, 1, 2, 3])):
            mutate_field(fields, random_source)
        start = b"".join(fields)
        outcomes.add(opens_or_is_refused(open_bytes, start + bytes(-len(start) % 32) + bytes(NUM_DATA_BYTES)))
    assert outcomes == {True, False}


def header_fields() -> list[bytes]:
    """A sound header cut into its fields: numbers, strings and their lengths apart."""
    u32, u64 = struct.Struct("<I").pack, struct.Struct("<Q").pack
    fields = [b"GGUF", u32(3), u64(2), u64(4)]
    for key, *value in (
        (b"general.alignment", u32(UINT32), u32(32)),
        (b"name", u32(STRING), u64(5), b"llama"),
        (b"tokens", u32(ARRAY), u32(STRING), u64(2), u64(1), b"a", u64(2), b"bc"),
        (b"types", u32(ARRAY), u32(INT32), u64(2), u32(1), u32(3)),
    ):
        fields += [u64(len(key)), key, *value]
    for name, cols, type_id, offset in ((b"one", 32, Q8_0, 0), (b"two", 16, F32, 96)):
        fields += [u64(len(name)), name, u32(2), u64(cols), u64(2), u32(type_id), u64(offset)]
    return fields


def mutate_field(fields: list[bytes], random_source: random.Random) -> None:
    at, other = random_source.randrange(1, len(fields)), random_source.randrange(1, len(fields))
    match random_source.randrange(6):
        case 0:
            del fields[at]
        case 1:
            fields.insert(at, fields[at])
        case 2:
            fields[at], fields[other] = fields[other], fields[at]
        case _ if len(fields[at]) in (4, 8):
            width = len(fields[at])
            near = int.from_bytes(fields[at], "little") + random_source.choice([-1, 1])
            value = random_source.choice([*INTERESTING, near]) % 256**width
            fields[at] = value.to_bytes(width, "little")
        case _:
            fields[at] = random_source.randbytes(random_source.randrange(12))


def test_the_unmutated_fields_are_a_sound_file(open_bytes: Open) -> None:
    start = b"".join(header_fields())
    with open_bytes(start + bytes(-len(start) % 32) + bytes(NUM_DATA_BYTES)) as file:
        assert (len(file.metadata), len(file.tensors)) == (4, 2)
        read_everything(file)


@given(st.binary(max_size=300), st.integers(0, 3), st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_any_bytes_behind_the_magic_never_crash(
    open_bytes: Open, rest: bytes, tensor_count: int, kv_count: int
) -> None:
    opens_or_is_refused(open_bytes, b"GGUF" + struct.pack("<IQQ", 3, tensor_count, kv_count) + rest)
