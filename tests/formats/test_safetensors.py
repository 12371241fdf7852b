"""Safetensors files and folders of them: what the `safetensors` package writes, and hostile files."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenglass.errors import ModelFileError
from tokenglass.formats import BlockType
from tokenglass.formats.safetensors import SafetensorsFile
from tokenglass.formats.shards import open_tensors

pytestmark = pytest.mark.filterwarnings("error")
Open = Callable[[bytes], SafetensorsFile]


def entry(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def packed(header: Any, data: bytes = bytes(8)) -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + data


SOUND = packed(
    {
        "__metadata__": {"format": "pt"},
        "two": entry("BF16", [2, 4], [8, 24]),
        "one": entry(),
        "mask": entry("BOOL", [3], [24, 27]),
        "none": entry("F16", [0, 4], [27, 27]),
    },
    np.arange(2, dtype="<f4").tobytes() + bytes(19),
)


@pytest.fixture
def open_bytes(tmp_path: Path) -> Open:
    path = tmp_path / "model.safetensors"

    def open_bytes(content: bytes) -> SafetensorsFile:
        path.unlink(missing_ok=True)  # a mapped file must not be rewritten in place
        path.write_bytes(content)
        return SafetensorsFile(path)

    return open_bytes


def test_tensors_come_in_the_order_of_their_bytes(open_bytes: Open) -> None:
    with open_bytes(SOUND) as file:
        assert list(file.tensors) == ["one", "two", "none"]
        assert file.tensors["two"].shape == (2, 4)
        assert file.tensors["two"].type is BlockType.BF16
        assert file.floats("one").tolist() == [0, 1]
        assert file.floats("none").shape == (0, 4)
        assert not file.raw("one").flags.writeable
        file.release("one")
        with pytest.raises(ModelFileError, match="tensor mask: type: BOOL is not supported yet"):
            file.raw("mask")


@pytest.mark.oracle
def test_values_are_those_the_safetensors_package_wrote(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    tensors = {
        f"{dtype}".removeprefix("torch."): torch.randn(5, 7).to(dtype)
        for dtype in (torch.float32, torch.float16, torch.bfloat16)
    }
    save_file(tensors, tmp_path / "m.safetensors", metadata={"format": "pt"})
    with SafetensorsFile(tmp_path / "m.safetensors") as file:
        assert file.tensors.keys() == tensors.keys()
        for name, values in tensors.items():
            assert np.array_equal(file.floats(name), values.float().numpy())


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\1\2", "header length: "),
        (struct.pack("<Q", 2**63) + b"{}", "header length: .* bytes are needed"),
        (packed(b"[]"), "header: this is not a safetensors file"),
        (packed(b'{"a": ', b""), "header: is not valid JSON"),
        (packed(b'{"a": 1e99999, "b": "\xff"}'), "header: the string is not UTF-8"),
        (packed(b'{"a": {}, "a": {}}'), "header: the key a appears twice"),
        (packed(b'{"a": ' + b"[" * 100_000), "header: is nested too deeply"),
        (packed(b'{"a": ' + b"9" * 5000 + b"}"), "header: is not valid JSON"),
        (packed(b'{"\\ud800": {}}'), "header: the string is not UTF-8"),
        (packed({"__metadata__": {"a": 1}}, b""), "__metadata__: must map names to strings"),
        (packed({"a": 3}), "tensor a: must be a JSON object"),
        (packed({"a": {}}), "tensor a: dtype: None is unknown"),
        (packed({"a": entry("F7")}), "tensor a: dtype: F7 is unknown"),
        (packed({"a": entry(shape=[True, 2])}), "tensor a: shape: must be a list"),
        (packed({"a": entry(shape=[2.0])}), "tensor a: shape: must be a list"),
        (packed({"a": entry(shape=[-1, -2])}), "tensor a: shape: must be a list"),
        (packed({"a": entry(shape=[2**63])}), "tensor a: shape: must be a list"),
        (packed({"a": entry(shape=[1] * 9)}), "tensor a: shape: must be a list"),
        (packed({"a": entry(shape=[2**62, 2**62])}), "tensor a: data_offsets: F32 of shape"),
        (packed({"a": entry(offsets=[8, 0])}), "tensor a: data_offsets: must be two counts"),
        (packed({"a": entry(offsets=[0, 8, 9])}), "tensor a: data_offsets: must be two counts"),
        (packed({"a": entry(offsets=[0, 4])}), r"tensor a: data_offsets: F32 of shape \[2\] takes 8 bytes"),
        (packed({"a": entry(offsets=[8, 16])}), "tensor a: data_offsets: begins at byte 8"),  # a gap
        (
            packed({"a": entry(), "b": entry()}),
            "tensor b: data_offsets: begins at byte 0, and the tensor before",
        ),
        (packed({"a": entry()}, bytes(7)), "tensor a: data_offsets: ends at byte 8"),
        (packed({"a": entry()}, bytes(9)), "data: 1 bytes belong to no tensor"),
    ],
)
def test_what_is_wrong_is_named(open_bytes: Open, content: bytes, problem: str) -> None:
    with pytest.raises(ModelFileError, match=f"^model.safetensors: {problem}") as caught:
        open_bytes(content)
    assert "\n" not in str(caught.value)


def test_a_file_cut_at_any_byte_is_refused(open_bytes: Open) -> None:
    open_bytes(SOUND).close()
    for length in range(len(SOUND)):
        with pytest.raises(ModelFileError, match=r"^model\.safetensors: (file|header|tensor \w+|data)"):
            open_bytes(SOUND[:length])


def opens_or_is_refused(open_bytes: Open, content: bytes) -> bool:
    try:
        file = open_bytes(content)
    except ModelFileError:
        return False
    with file:
        for name, info in file.tensors.items():
            assert len(file.raw(name)) == info.num_bytes
            file.release(name)
    return True


@pytest.mark.parametrize("num_files", [300, pytest.param(20_000, marks=pytest.mark.slow)])
def test_bytes_changed_at_random_never_crash(open_bytes: Open, num_files: int) -> None:
    source = random.Random(0)
    for _ in range(num_files):
        mutated = bytearray(SOUND)
        for _ in range(source.choice([1, 1, 2, 5])):
            mutated[source.randrange(len(SOUND) - 27)] = source.choice(b'0123456789{}[]",:-.eE\x00\xff')
        opens_or_is_refused(open_bytes, bytes(mutated))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=4), st.fixed_dictionaries(
    {"dtype": st.sampled_from(["F32", "BF16", "BOOL"]) | JSON, "shape": JSON, "data_offsets": JSON}
), max_size=3))  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_any_header_never_crashes(tmp_path_factory: pytest.TempPathFactory, header: dict[str, Any]) -> None:
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    path.write_bytes(packed(header))
    opens_or_is_refused(lambda _: SafetensorsFile(path), b"")
    path.unlink()


# folders


def write_folder(folder: Path, weight_map: Any) -> Path:
    (folder / "a.safetensors").write_bytes(packed({"one": entry()}))
    (folder / "b.safetensors").write_bytes(
        packed({"two": entry(), "three": entry(offsets=[8, 16])}, bytes(16))
    )
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return folder


def test_shards_are_one_file(tmp_path: Path) -> None:
    homes = {"two": "b.safetensors", "one": "a.safetensors", "three": "b.safetensors"}
    with open_tensors(write_folder(tmp_path, homes)) as file:
        assert list(file.tensors) == ["two", "one", "three"]
        assert all(file.floats(name).tolist() == [0, 0] for name in homes)
        file.release("two")
    (tmp_path / "model.safetensors").write_bytes(packed({"single": entry()}))
    with open_tensors(tmp_path) as file:
        assert list(file.tensors) == ["single"]


@pytest.mark.parametrize(
    ("weight_map", "problem"),
    [
        ({"one": "../a.safetensors"}, "weight_map: one: must name a file in the same folder"),
        ({"one": "/a.safetensors"}, "weight_map: one: must name a file in the same folder"),
        ({"one": "sub\\a.safetensors"}, "weight_map: one: must name a file in the same folder"),
        ({"one": ".."}, "weight_map: one: must name a file in the same folder"),
        ({"one": "a.safetensors\n"}, "weight_map: one: must name a file in the same folder"),
        ({"one": 3}, "weight_map: one: must name a file in the same folder"),
        ({"one": "b.safetensors"}, "tensor one: is missing"),
        ({"one": "c.safetensors"}, "file: No such file"),
        ([], "weight_map: must be a JSON object"),
        ({}, "weight_map: must be a JSON object"),
        ({f"t{i}": f"s{i}" for i in range(5000)}, "weight_map: names more than 4096 files"),
    ],
)
def test_an_index_that_does_not_hold_is_refused(tmp_path: Path, weight_map: Any, problem: str) -> None:
    with pytest.raises(ModelFileError, match=problem):
        open_tensors(write_folder(tmp_path, weight_map))


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="has no weights"):
        open_tensors(tmp_path)
