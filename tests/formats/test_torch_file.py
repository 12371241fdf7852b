"""PyTorch checkpoints: what `torch.save` wrote, hostile archives, and pickles that would run code."""

from __future__ import annotations

import builtins
import os
import pickle
import random
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenglass.errors import ModelFileError
from tokenglass.formats.shards import open_tensors
from tokenglass.formats.torch_file import TorchFile

pytestmark = pytest.mark.filterwarnings("error")
Open = Callable[[bytes], TorchFile]


def text(word: str) -> bytes:
    return b"X" + struct.pack("<I", len(word)) + word.encode()


def number(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def numbers(values: tuple[int, ...]) -> bytes:
    return b"(" + b"".join(map(number, values)) + b"t"


def tensor(
    shape: tuple[int, ...] = (2, 3),
    strides: tuple[int, ...] = (3, 1),
    *,
    offset: int = 0,
    key: str = "0",
    num_items: int = 6,
    storage: str = "FloatStorage",
) -> bytes:
    """The opcodes that `torch.save` writes for a tensor."""
    reference = b"(" + text("storage") + b"ctorch\n" + storage.encode() + b"\n"
    reference += text(key) + text("cpu") + number(num_items) + b"tQ"
    arguments = reference + number(offset) + numbers(shape) + numbers(strides) + b"\x89" + ORDERED_DICT
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + arguments + b"tR"


ORDERED_DICT = b"ccollections\nOrderedDict\n)R"


def state(*items: tuple[str, bytes]) -> bytes:
    return b"\x80\x02" + ORDERED_DICT + b"(" + b"".join(text(name) + value for name, value in items) + b"u."


STORAGE = np.arange(6, dtype="<f4").tobytes()


def archive(path: Path, program: bytes, *, compression: int = zipfile.ZIP_STORED, **more: bytes) -> bytes:
    path.unlink(missing_ok=True)
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in {"data.pkl": program, "byteorder": b"little", "data/0": STORAGE, **more}.items():
            file.writestr(f"archive/{name}", content)
    return path.read_bytes()


def older(program: bytes, *, little_endian: bool = True, keys: object = ("0",)) -> bytes:
    """The form of before PyTorch 1.6, with one storage of six floats."""
    keys = list(keys) if isinstance(keys, tuple) else keys
    values = (0x1950A86A20F9469CFC6C, 1001, {"protocol_version": 1001, "little_endian": little_endian})
    start = b"".join(pickle.dumps(value, 2) for value in values)
    return start + program + pickle.dumps(keys, 2) + struct.pack("<q", 6) + STORAGE


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pytorch_model.bin"


@pytest.mark.oracle
def test_values_are_those_torch_saved(path: Path) -> None:
    import torch

    torch.manual_seed(0)
    base = torch.randn(40)
    tensors = OrderedDict(
        f32=torch.randn(5, 7), f16=torch.randn(3, 4).half(), bf16=torch.randn(9).bfloat16(),
        transposed=torch.randn(4, 6).t(), part=base[10:20], tied=base, strided=base[::3],
        scalar=torch.tensor(2.5), empty=torch.zeros(0, 3), parameter=torch.nn.Linear(3, 2).weight.detach(),
    )  # fmt: skip
    torch.save(tensors, path)
    with TorchFile(path) as file:
        assert file.tensors.keys() == tensors.keys()
        for name, values in tensors.items():
            assert np.array_equal(file.floats(name), values.float().numpy()), name
            file.release(name)
    torch.save(torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).state_dict(), path)
    with TorchFile(path) as file:
        assert file.tensors["0.weight"].shape == (2, 3)
        assert "1.num_batches_tracked" in file.tensors


def test_an_older_file_gives_the_same(path: Path) -> None:
    path.write_bytes(older(state(("rows", tensor()), ("turned", tensor((3, 2), (1, 3))))))
    with TorchFile(path) as file:
        assert file.floats("rows").tolist() == [[0, 1, 2], [3, 4, 5]]
        assert file.floats("turned").tolist() == [[0, 3], [1, 4], [2, 5]]
    for content, problem in (
        (older(state(("a", tensor())), little_endian=False), "byteorder: only little-endian"),
        (older(state(("a", tensor(num_items=7)))), "storage 0: ends at byte"),
        (older(state(("a", tensor(num_items=-1)))), "storage 0: ends at byte"),
        (older(state(("a", tensor())), keys=["1"]), "storages: are not those of the tensors"),
        (older(state(("a", tensor())), keys=["0", "0"]), "storages: are not those of the tensors"),
        (older(state(("a", tensor())), keys=3), "tensor a: storage: 0 is not in the file"),
        (older(b"\x80\x02cos\nsystem\n."), r"pickle: asks for os\.system"),
    ):
        path.unlink()
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=problem):
            TorchFile(path)


@pytest.mark.oracle
def test_values_of_an_older_file_are_those_torch_saved(path: Path) -> None:
    import torch

    base = torch.randn(40)
    tensors = OrderedDict(a=torch.randn(5, 7), b=torch.randn(9).half(), part=base[10:20], all=base)
    torch.save(tensors, path, _use_new_zipfile_serialization=False)
    with TorchFile(path) as file:
        for name, values in tensors.items():
            assert np.array_equal(file.floats(name), values.float().numpy()), name


def test_tensors_are_parts_of_storages(path: Path) -> None:
    program = state(
        ("rows", tensor()),
        ("transposed", tensor((3, 2), (1, 3))),
        ("last", tensor((2,), (1,), offset=4)),
    )
    archive(path, program)
    with open_tensors(path.parent) as file:
        assert file.floats("rows").tolist() == [[0, 1, 2], [3, 4, 5]]
        assert file.floats("transposed").tolist() == [[0, 3], [1, 4], [2, 5]]
        assert file.floats("last").tolist() == [4, 5]
    archive(path, state(("mask", tensor((24,), (1,), num_items=24, storage="BoolStorage"))))
    match = "tensor mask: type: BOOL is not supported yet"
    with open_tensors(path.parent) as file, pytest.raises(ModelFileError, match=match):
        file.raw("mask")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (tensor(offset=1), "tensor a: shape: reaches past the end of its storage"),
        (tensor((2, 3), (2**30, 1)), "tensor a: shape: reaches past the end of its storage"),
        (tensor((2**30, 2**30), (0, 0)), "tensor a: shape: reaches past the end of its storage"),
        (tensor((3, 3), (1, 1)), "tensor a: shape: reaches past the end of its storage"),  # overlapping rows
        (tensor((2, 3), (-3, 1)), "tensor a: shape: does not go with its strides"),
        (tensor((-2, -3)), "tensor a: shape: does not go with its strides"),
        (tensor(offset=-1), "tensor a: shape: does not go with its strides"),
        (tensor((2, 3), (1,)), "tensor a: shape: does not go with its strides"),
        (tensor((1,) * 9, (1,) * 9), "tensor a: shape: does not go with its strides"),
        (tensor(num_items=7), "tensor a: storage: has 24 bytes for 7 items of 4"),
        (tensor(num_items=-1), "tensor a: storage: has 24 bytes"),
        (tensor(key="1"), "tensor a: storage: 1 is not in the file"),
        (tensor(key="../data.pkl"), "is not in the file"),
        (tensor(storage="QInt8Storage"), r"pickle: asks for torch\.QInt8Storage"),
        (number(3), "tensor a: is not a tensor"),
        (ORDERED_DICT, "tensor a: is not a tensor"),
    ],
)
def test_a_tensor_that_does_not_hold_is_refused(path: Path, value: bytes, problem: str) -> None:
    archive(path, state(("a", value)))
    with pytest.raises(ModelFileError, match=problem):
        TorchFile(path)


class Reduced:
    """Pickled as a call."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.call


MARKER = "executed"


def attacks(folder: Path) -> list[bytes]:
    """Pickles that make a file in `folder`, each by another way."""
    command, code = f"touch {folder / MARKER}", f"open({str(folder / MARKER)!r}, 'w')"
    calls = [
        Reduced(os.system, command), Reduced(builtins.eval, code), Reduced(builtins.exec, code),
        Reduced(builtins.open, str(folder / MARKER), "w"), Reduced(builtins.__import__, "os"),
    ]  # fmt: skip
    programs = [pickle.dumps(call, protocol) for call in calls for protocol in (0, 1, 2, 3, 4, 5)]
    posix = text(command) + b"\x85R."
    return [
        *programs,
        b"\x80\x02cposix\nsystem\n" + posix,
        b"\x80\x04" + text("os") + text("system") + b"\x93" + posix,  # STACK_GLOBAL
        b"\x80\x04" + text("torch") + text("_utils.os.system") + b"\x93" + posix,
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2.__globals__\n.",
        b"\x80\x02(" + text(command) + b"ios\nsystem\n.",  # INST
        b"\x80\x02(cos\nsystem\n" + text(command) + b"o.",  # OBJ
        b"\x80\x02ccollections\nOrderedDict\n)\x81.",  # NEWOBJ
        b"\x80\x02\x82\x01.",  # EXT1
        b"\x80\x02\x83\x01\x00.",  # EXT2
        b"\x80\x02\x84\x01\x00\x00\x00.",  # EXT4
        b"\x80\x02" + ORDERED_DICT + text("__setstate__") + b"b.",  # BUILD with something odd
        b"\x80\x02" + ORDERED_DICT + b"}" + text("__class__") + b"cos\nsystem\nsb.",
        b"\x80\x02" + text("a") + b"}b.",  # BUILD of a string
        b"\x80\x02ccollections\nOrderedDict\n" + text(command) + b"\x85R.",
        b"\x80\x02}" + text("a") + b"R.",
        b"Ppersistent\n.",
        b"\x80\x02" + text("storage") + b"Q.",
        b"\x80\x05\x97.",  # NEXT_BUFFER
    ]


def test_no_pickle_code_is_ever_executed(path: Path) -> None:
    programs = attacks(path.parent)
    os.system(f"touch {path.parent / MARKER}")  # the attack itself works
    (path.parent / MARKER).unlink()
    for program in programs:
        archive(path, state(("a", program.removeprefix(b"\x80\x02")[:-1])))
        with pytest.raises(ModelFileError, match=r"pickle: "):
            TorchFile(path)
        archive(path, program)
        with pytest.raises(ModelFileError, match=r"pickle: |data\.pkl: is not a dict"):
            TorchFile(path)
        path.unlink()
        path.write_bytes(older(program))
        with pytest.raises(ModelFileError, match=r"pickle: |data\.pkl: is not a dict|storages: "):
            TorchFile(path)
    assert not (path.parent / MARKER).exists()


def test_memory_follows_the_file_and_not_its_words(path: Path) -> None:
    for program in (
        b"\x80\x02]r\xff\xff\xff\xff.",  # LONG_BINPUT at 2^32 - 1
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.",  # BINBYTES8 of 2^63 bytes
        b"\x80\x04\x96\xff\xff\xff\xff\xff\xff\xff\x7f.",  # BYTEARRAY8
        b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f].",  # FRAME
        b"\x80\x02" + b"(" * 100_000 + b".",
        b"\x80\x02)" + b"2\x86" * 64 + b".",  # a tuple that holds itself twice, 64 times over
        b"\x80\x02)q\0" + b"h\0h\0\x86q\0" * 64 + b".",
        b"\x80\x02]q\0h\0a.",  # a list inside itself
        b"\x80\x02}q\0X\1\0\0\0ah\0s.",  # a dict inside itself
        b"L" + b"9" * 100_000 + b"L\n.",
        b"h\0.",
        b"S'\\_'\n.",  # an escape that Python would warn of
        b"\x80\x02)",
        b"",
    ):
        archive(path, program)
        with pytest.raises(ModelFileError, match=r"pickle|data\.pkl|tensor a: is not a tensor"):
            TorchFile(path)


def test_archives_that_are_not_plain_are_refused(path: Path) -> None:
    sound = state(("a", tensor()))
    for content, problem in (
        (archive(path, sound, compression=zipfile.ZIP_DEFLATED), "is compressed or encrypted"),
        (archive(path, sound, byteorder=b"big"), "byteorder: only little-endian"),
        (b"PK\3\4" + bytes(100), "zip directory: is missing"),
        (b"\x80\x04.", "magic: this is not a PyTorch checkpoint"),
    ):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=problem):
            TorchFile(path)
    path.write_bytes(archive(path, sound, byteordes=b"").replace(b"byteordes", b"byteorder"))
    with pytest.raises(ModelFileError, match="zip member archive/byteorder: appears twice"):
        TorchFile(path)


def opens_or_is_refused(path: Path, content: bytes) -> bool:
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    try:
        file = TorchFile(path)
    except ModelFileError:
        return False
    with file:
        for name, info in file.tensors.items():
            assert len(file.raw(name)) == info.num_bytes
    return True


def test_a_file_cut_at_any_byte_is_refused(path: Path) -> None:
    sound = archive(path, state(("a", tensor()), ("b", tensor((3, 2), (1, 3)))))
    assert opens_or_is_refused(path, sound)
    assert not any(opens_or_is_refused(path, sound[:length]) for length in range(len(sound)))
    sound = older(state(("a", tensor())))
    assert opens_or_is_refused(path, sound)
    assert not any(opens_or_is_refused(path, sound[:length]) for length in range(len(sound)))


@pytest.mark.parametrize("num_files", [400, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("is_older", [False, True])
def test_bytes_changed_at_random_never_crash(path: Path, num_files: int, is_older: bool) -> None:
    source, outcomes = random.Random(0), set()
    program = state(("a", tensor()), ("b", tensor((3, 2), (1, 3))))
    sound = older(program) if is_older else archive(path, program)
    for _ in range(num_files):
        mutated = bytearray(sound)
        for _ in range(source.choice([1, 1, 2, 5])):
            at, width = source.randrange(len(sound) - 8), source.choice([1, 1, 4, 8])
            value = source.choice([0, 1, 255, source.randrange(256), 2**31, 2**32 - 1, 2**63, 2**64 - 1])
            mutated[at : at + width] = (value % 256**width).to_bytes(width, "little")
        outcomes.add(opens_or_is_refused(path, bytes(mutated)))
    assert outcomes == {True, False}


@given(st.lists(st.sampled_from([
    b"}", b"]", b")", b"(", b"t", b"u", b"s", b"e", b"a", b"R", b"b", b"Q", b"0", b"2", b"\x94", b"\x93",
    b"q\0", b"h\0", b"K\1", b"\x85", b"\x86", b"\x87", tensor(), ORDERED_DICT, text("a"), text("storage"),
    b"ctorch\nFloatStorage\n", b"ctorch._utils\n_rebuild_tensor_v2\n", b"\x8a\x01\xff", b"G" + bytes(8),
]) | st.binary(max_size=3), max_size=30))  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_any_program_never_crashes(tmp_path_factory: pytest.TempPathFactory, opcodes: list[bytes]) -> None:
    path = tmp_path_factory.getbasetemp() / "any.bin"
    program = b"\x80\x02" + b"".join(opcodes) + b"."
    opens_or_is_refused(path, archive(path, program))
    opens_or_is_refused(path, older(program))
