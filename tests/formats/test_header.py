"""Hostile headers, field by field: every fault is a ModelFileError naming its field, and costs no memory."""

from __future__ import annotations

import re
import struct
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from tests.formats.hostile import (
    F32,
    NUM_DATA_BYTES,
    Q4_0,
    Q8_0,
    Open,
    alignment,
    array_of,
    header,
    pair,
    tensor,
    tensors,
)
from tests.support.tiny_gguf import (
    ARRAY,
    BOOL,
    FLOAT32,
    INT32,
    STRING,
    UINT8,
    UINT64,
    pack_string,
    pack_tensor_info,
    pack_value,
)
from tokenglass.errors import ModelFileError
from tokenglass.formats import GGUFFile

pytestmark = pytest.mark.filterwarnings("error")

CASES: dict[str, tuple[bytes, str, str]] = {
    # counts
    "tensor count near 2^64": (header(tensor_count=2**64 - 1), "tensor_count", "do not fit"),
    "tensor count whose bytes wrap to 0": (header(tensor_count=2**63), "tensor_count", "do not fit"),
    "tensor count above the file": (header(tensor_count=9), "tensor_count", "9 items of at least 33 bytes"),
    "key count of 2^60": (header(kv_count=2**60), "kv_count", "do not fit"),
    "key count one too many": (
        header(pairs=pack_string("a") + pack_value(1), kv_count=2),
        "key 1",
        "is empty",
    ),
    # keys
    "key twice": (
        header(pairs=2 * (pack_string("general.name") + pack_value("x")), kv_count=2),
        "key general.name",
        "appears twice",
    ),
    "key empty": (pair("", pack_value(1)), "key 0", "is empty"),
    "key not UTF-8": (pair(b"\xff\xfe", pack_value(1)), "key 0", "not UTF-8"),
    "key longer than the file": (
        header(pairs=struct.pack("<Q", 60000), kv_count=1),
        "key 0",
        "are needed",
    ),
    "key longer than the format allows": (
        header(pairs=struct.pack("<Q", 2**63), kv_count=1),
        "key 0",
        "at most 65535",
    ),
    "key with control characters": (
        pair("a\x1b[2Jb", struct.pack("<I", 99)),
        "key 'a\\x1b[2Jb'",
        "99 is unknown",
    ),
    # values
    "value type unknown": (pair("k", struct.pack("<I", 13)), "key k", "value type 13 is unknown"),
    "string longer than the file": (
        pair("k", struct.pack("<IQ", STRING, 5000)),
        "key k",
        "5000 bytes are needed",
    ),
    "string of 2^64 - 1 bytes": (pair("k", struct.pack("<IQ", STRING, 2**64 - 1)), "key k", "at most"),
    "string not UTF-8": (pair("k", pack_value(b"\xc3\x28")), "key k", "not UTF-8"),
    "bool of 2": (pair("k", struct.pack("<IB", BOOL, 2)), "key k", "0 or 1, not 2"),
    "array of arrays": (pair("k", array_of(ARRAY, 1, array_of(UINT8, 1))), "key k", "arrays of arrays"),
    "array type unknown": (pair("k", array_of(77, 1)), "key k", "array type 77 is unknown"),
    "array of 2^62 numbers, wrapping to 0": (pair("k", array_of(INT32, 2**62)), "key k", "do not fit"),
    "array longer than the file": (pair("k", array_of(FLOAT32, 100)), "key k", "do not fit"),
    "bool array with a 3": (pair("k", array_of(BOOL, 2, b"\1\3")), "key k", "0 or 1, not 3"),
    "string array of 2^61 strings": (pair("k", array_of(STRING, 2**61)), "key k", "do not fit"),
    "string array whose string runs past the end": (
        pair("k", array_of(STRING, 1, struct.pack("<Q", 5000))),
        "key k",
        "bytes are needed",
    ),
    "string array whose second string is past the end": (
        pair("k", array_of(STRING, 2, struct.pack("<Q", 5000))),
        "key k",
        "string 1 of 2 is past the end",
    ),
    "string array with a length of 2^64 - 1": (
        pair("k", array_of(STRING, 2, struct.pack("<Q", 2**64 - 1))),
        "key k",
        "of 2 is past the end",
    ),
    "string array with a length of 2^63 - 1": (
        pair("k", array_of(STRING, 2, struct.pack("<Q", 2**63 - 1))),
        "key k",
        "of 2 is past the end",
    ),
    # alignment
    "alignment 0": (alignment(pack_value(0)), "key general.alignment", "power of two"),
    "alignment 1": (alignment(pack_value(1)), "key general.alignment", "power of two"),
    "alignment 33": (alignment(pack_value(33)), "key general.alignment", "not 33"),
    "alignment as uint64": (
        alignment(pack_value(np.uint64(32))),
        "key general.alignment",
        "must be a uint32",
    ),
    "alignment as a string": (alignment(pack_value("32")), "key general.alignment", "must be a uint32"),
    "alignment as a bool": (alignment(pack_value(True)), "key general.alignment", "must be a uint32"),
    "alignment as an array": (
        alignment(pack_value(np.array([32], np.uint32))),
        "key general.alignment",
        "must be a uint32",
    ),
    # tensors
    "tensor name twice": (
        tensors(pack_tensor_info("w", (8,), F32, 0), pack_tensor_info("w", (8,), F32, 32)),
        "tensor w",
        "appears twice",
    ),
    "tensor name empty": (tensor("", (8,)), "tensor 0: name", "is empty"),
    "tensor name not UTF-8": (tensor(b"\x80", (8,)), "tensor 0: name", "not UTF-8"),
    "no dimensions": (tensor("wwwwwwww", ()), "tensor wwwwwwww: dimensions", "there are 0"),
    "five dimensions": (tensor("w", (1, 1, 1, 1, 1)), "tensor w: dimensions", "there are 5"),
    "2^32 - 1 dimensions": (
        header(infos=pack_string("w") + struct.pack("<I", 2**32 - 1) + bytes(24), tensor_count=1),
        "tensor w: dimensions",
        "there are 4294967295",
    ),
    "dimension 0": (tensor("w", (4, 0)), "tensor w: dimensions", "is zero"),
    "dimension 2^42 + 1": (tensor("w", (2**42 + 1, 2**22)), "tensor w: dimensions", "takes"),
    "dimensions whose product wraps to 0": (tensor("w", (2**32, 2**32)), "tensor w: dimensions", "takes"),
    "dimensions whose bytes wrap to 0": (tensor("w", (2**62,)), "tensor w: dimensions", "takes"),
    "four dimensions of 2^64 - 1": (tensor("w", (2**64 - 1,) * 4), "tensor w: dimensions", "takes"),
    "row not whole blocks": (
        tensor("w", (32, 33), Q8_0),
        "tensor w: dimensions",
        "rows of 33 are not whole Q8_0",
    ),
    "column-wise whole, row-wise not": (
        tensor("w", (32, 1), Q4_0),
        "tensor w: dimensions",
        "rows of 1 are not",
    ),
    "type unknown": (tensor("w", (8,), 4), "tensor w: type", "block type 4 is unknown"),
    "type 2^32 - 1": (tensor("w", (8,), 2**32 - 1), "tensor w: type", "is unknown"),
    "offset misaligned": (tensor("w", (8,), offset=8), "tensor w: offset", "8 is not a multiple"),
    "offset past the end": (tensor("w", (8,), offset=256), "tensor w: offset", "and the file has"),
    "offset near 2^64": (tensor("w", (8,), offset=2**64 - 32), "tensor w: offset", "and the file has"),
    "one value past the end": (tensor("w", (65,)), "tensor w: offset", "and the file has"),
    "tensors overlap": (
        tensors(pack_tensor_info("a", (16,), F32, 0), pack_tensor_info("b", (16,), F32, 32)),
        "tensor b: offset",
        "overlaps the tensor a",
    ),
    "tensors overlap out of order": (
        tensors(pack_tensor_info("b", (16,), F32, 32), pack_tensor_info("a", (16,), F32, 0)),
        "tensor b: offset",
        "overlaps the tensor a",
    ),
    "tensors at one place": (
        tensors(pack_tensor_info("a", (8,), F32, 64), pack_tensor_info("b", (8,), F32, 64)),
        "tensor b: offset",
        "overlaps",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_hostile_field_is_refused_by_name(open_bytes: Open, case: str) -> None:
    content, field, problem = CASES[case]
    with pytest.raises(ModelFileError, match=problem) as caught:
        open_bytes(content)
    assert caught.value.field == field
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400


def test_the_largest_honest_tensor_fits(open_bytes: Open) -> None:
    with open_bytes(tensor("w", (64,))) as file:
        assert file.floats("w").tolist() == [0] * 64


def test_more_keys_or_tensors_or_items_than_any_model_has_are_refused(open_bytes: Open) -> None:
    many = 1 << 16
    with pytest.raises(ModelFileError, match="kv_count: 65537 items, and at most 65536"):
        open_bytes(header(pairs=bytes(14 * (many + 1)), kv_count=many + 1))
    with pytest.raises(ModelFileError, match="tensor_count: 65537 items, and at most 65536"):
        open_bytes(header(infos=bytes(33 * (many + 1)), tensor_count=many + 1))
    with pytest.raises(ModelFileError, match="key k: 4194305 items, and at most 4194304"):
        open_bytes(pair("k", array_of(UINT8, (1 << 22) + 1, bytes((1 << 22) + 1))))


@pytest.mark.parametrize(
    "content",
    [
        header(kv_count=2**40),
        header(tensor_count=2**40),
        pair("k", array_of(STRING, 2**40)),
        pair("k", array_of(UINT8, 2**40)),
        pair("k", array_of(UINT64, 2**61)),
        pair("k", array_of(STRING, 8, struct.pack("<Q", 2**40))),
        pair("k", struct.pack("<IQ", STRING, 2**40)),
        header(pairs=struct.pack("<Q", 2**40), kv_count=1),
        tensor("w", (2**20, 2**20)),
        tensor("w", (8,), offset=2**40),
        alignment(pack_value(2**31)),
    ],
)
def test_a_claim_of_2_to_the_40_allocates_nothing(open_bytes: Open, content: bytes) -> None:
    tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        with suppress(ModelFileError):
            open_bytes(content).close()
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak < 200_000


def test_messages_are_short_whatever_the_name(open_bytes: Open) -> None:
    with pytest.raises(ModelFileError, match=re.escape("value type 99 is unknown")) as caught:
        open_bytes(pair("k" * 60_000, struct.pack("<I", 99)))
    assert len(str(caught.value)) < 200


@pytest.mark.skipif(sys.platform == "win32", reason="files are not sparse there")
def test_the_header_is_read_without_touching_what_the_tensors_hold(tmp_path: Path) -> None:
    """A sparse file of 16 GiB opens at once: tensor bytes are mapped, not read."""
    start = header(infos=pack_tensor_info("w", (2**16, 2**16), F32, 0), tensor_count=1)[:-NUM_DATA_BYTES]
    path = tmp_path / "sparse.gguf"
    path.write_bytes(start)
    with path.open("r+b") as sparse:
        sparse.truncate(len(start) + 4 * 2**32)
    with GGUFFile.open(path) as file:
        assert file.data_bytes == 4 * 2**32
        assert file.raw("w")[-1] == 0
