"""What a GGUFFile gives from a sound file, and what it says of files that are no GGUF at all."""

from __future__ import annotations

import os
import re
import struct
import time
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.tiny_gguf import write_gguf
from tests.support.tiny_llama import tiny_metadata, tiny_weights
from tokenglass.errors import ModelFileError
from tokenglass.formats import BlockType, GGUFFile, StringArray

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture
def file(tiny_model_path: Path) -> Any:
    with GGUFFile.open(tiny_model_path) as file:
        yield file


def test_metadata_is_what_was_written(file: GGUFFile) -> None:
    written = tiny_metadata()
    assert list(file.metadata) == list(written)
    for key, value in written.items():
        ours = file.metadata[key]
        if isinstance(ours, StringArray):
            assert [text.decode() for text in ours] == value
        elif isinstance(ours, np.ndarray):
            assert ours.tolist() == value
        else:
            assert ours == (pytest.approx(value) if isinstance(value, float) else value)
            assert type(ours) is type(value)


def test_tensors_are_those_the_gguf_package_reads(tiny_model_path: Path, file: GGUFFile) -> None:
    reader = gguf.GGUFReader(tiny_model_path)
    assert list(file.tensors) == [tensor.name for tensor in reader.tensors]
    for theirs in reader.tensors:
        info = file.tensors[theirs.name]
        assert info.shape == tuple(theirs.shape[::-1])
        assert (info.type.name, info.offset, info.num_bytes) == (
            theirs.tensor_type.name,
            theirs.data_offset,
            theirs.n_bytes,
        )
        assert file.raw(theirs.name).tobytes() == theirs.data.tobytes()
        expected = gguf.quants.dequantize(theirs.data, theirs.tensor_type)
        assert np.array_equal(file.floats(theirs.name).view(np.uint32), expected.view(np.uint32))
    assert file.data_bytes == sum(tensor.n_bytes for tensor in reader.tensors)


def test_shapes_are_rows_then_columns(file: GGUFFile) -> None:
    for name, values in tiny_weights().items():
        assert file.tensors[name].shape == values.shape
        assert file.floats(name).shape == values.shape
    assert file.tensors["token_embd.weight"].type is BlockType.Q8_0


def test_version_2_and_other_alignments_are_read(tmp_path: Path) -> None:
    ones = np.ones(5, np.float32)
    path = write_gguf(
        tmp_path / "v2.gguf", {}, {"a": ("F32", ones), "b": ("F16", ones)}, alignment=8, version=2
    )
    with GGUFFile.open(str(path)) as file:
        assert file.floats("a").tolist() == file.floats("b").tolist() == [1] * 5


def test_a_file_without_tensors_or_metadata_opens(tmp_path: Path) -> None:
    path = tmp_path / "empty.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 0))
    with GGUFFile.open(path) as file:
        assert (len(file.metadata), len(file.tensors), file.data_bytes) == (0, 0, 0)


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), min_size=1, max_size=40).filter(
            lambda key: key != "general.alignment"
        ),
        st.one_of(
            st.booleans(),
            st.integers(0, 2**32 - 1),
            st.integers(-(2**63), 2**63 - 1).map(np.int64),
            st.floats(allow_nan=False).map(np.float64),
            st.text(st.characters(codec="utf-8"), max_size=40),
            st.lists(st.binary(max_size=20), max_size=8),
            st.lists(st.integers(0, 255), max_size=8).map(lambda values: np.array(values, np.uint8)),
            st.lists(st.booleans(), max_size=8).map(lambda values: np.array(values, np.bool_)),
        ),
        max_size=8,
    )
)
@settings(max_examples=100, deadline=None)
def test_any_metadata_survives_the_round_trip(
    tmp_path_factory: pytest.TempPathFactory, metadata: dict[str, Any]
) -> None:
    path = write_gguf(tmp_path_factory.getbasetemp() / "round-trip.gguf", metadata, {})
    with GGUFFile.open(path) as file:
        read = {key: plain(value) for key, value in file.metadata.items()}
    path.unlink()
    assert read == {key: plain(value) for key, value in metadata.items()}


def plain(value: Any) -> Any:
    if isinstance(value, StringArray):
        return value.to_list()
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def test_get_gives_the_value_of_the_kind_asked_for(file: GGUFFile) -> None:
    assert file.get("general.architecture", str) == "llama"
    assert file.get("llama.block_count", int) == 2
    assert file.get("llama.rope.freq_base", float) == 10000.0
    assert file.get("tokenizer.ggml.add_bos_token", bool) is False
    assert file.get("tokenizer.ggml.tokens", StringArray)[1] == b"<|im_start|>"
    assert file.get("tokenizer.ggml.token_type", np.int32)[:4].tolist() == [3, 3, 3, 1]


def test_get_falls_back_only_where_a_default_is_given(file: GGUFFile) -> None:
    assert file.get("llama.vocab", int, 7) == 7
    assert file.get("llama.vocab", int, None) is None
    assert file.get("tokenizer.ggml.scores", np.float32, None) is None
    with pytest.raises(ModelFileError, match=r"key llama\.vocab: is missing"):
        file.get("llama.vocab", int)


@pytest.mark.parametrize(
    ("key", "kind", "problem"),
    [
        ("llama.block_count", str, "must be a string, not an integer"),
        ("llama.block_count", float, "must be a float, not an integer"),
        ("llama.block_count", bool, "must be a bool, not an integer"),
        ("tokenizer.ggml.add_bos_token", int, "must be an integer, not a bool"),
        ("llama.rope.freq_base", int, "must be an integer, not a float"),
        ("general.name", StringArray, "must be an array of strings, not a string"),
        ("tokenizer.ggml.tokens", str, "must be a string, not an array of strings"),
        ("tokenizer.ggml.token_type", int, "must be an integer, not an array of int32"),
        ("tokenizer.ggml.token_type", np.float32, "must be an array of float32, not an array of int32"),
        ("tokenizer.ggml.tokens", np.int32, "must be an array of int32, not an array of strings"),
        ("llama.block_count", np.uint32, "must be an array of uint32, not an integer"),
    ],
)
def test_get_refuses_another_kind_and_names_both(file: GGUFFile, key: str, kind: Any, problem: str) -> None:
    with pytest.raises(ModelFileError, match=re.escape(f"tiny-llama.gguf: key {key}: {problem}")) as caught:
        file.get(key, kind, None)
    assert caught.value.field == f"key {key}"


def test_bytes_declared_as_uint8_are_never_read_as_floats(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "scores.gguf", {"tokenizer.ggml.scores": np.zeros(3, np.uint8)}, {})
    with GGUFFile.open(path) as file, pytest.raises(ModelFileError, match="not an array of uint8"):
        file.get("tokenizer.ggml.scores", np.float32)


def test_raw_is_a_read_only_view_that_outlives_the_file(tiny_model_path: Path) -> None:
    file = GGUFFile.open(tiny_model_path)
    raw = file.raw("blk.0.attn_q.weight")
    before = raw.copy()
    with pytest.raises(ValueError, match="read-only"):
        raw[0] = 1
    with pytest.raises(ValueError, match="cannot set WRITEABLE"):
        raw.flags.writeable = True
    file.close()
    file.close()
    assert np.array_equal(raw, before)
    with pytest.raises(ValueError, match="is closed"):
        file.raw("blk.0.attn_q.weight")


def test_metadata_and_tensors_cannot_be_changed(file: GGUFFile) -> None:
    with pytest.raises(TypeError):
        file.metadata["llama.block_count"] = 3  # type: ignore[index]
    with pytest.raises(TypeError):
        del file.tensors["output_norm.weight"]  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="read-only"):
        file.get("tokenizer.ggml.token_type", np.int32)[0] = 1


def test_a_missing_tensor_is_named(file: GGUFFile) -> None:
    for read in (file.raw, file.floats, file.release):
        with pytest.raises(ModelFileError, match=r"tensor output\.weight: is missing"):
            read("output.weight")


def test_an_unsupported_type_opens_and_is_named_when_it_is_read(tmp_path: Path) -> None:
    raw = np.zeros(2 * 136, np.uint8)
    path = write_gguf(tmp_path / "iq.gguf", {}, {"w": ("IQ4_XS", (2, 256), raw.tobytes())})
    with GGUFFile.open(path) as file:
        assert file.raw("w").tobytes() == raw.tobytes()
        with pytest.raises(ModelFileError, match="tensor w: type: IQ4_XS is not supported yet"):
            file.floats("w")


def test_release_gives_pages_back_and_the_values_stay(tmp_path: Path) -> None:
    values = np.random.default_rng(0).standard_normal((512, 4096), np.float32)  # 8 MiB
    path = write_gguf(tmp_path / "big.gguf", {}, {"w": ("F32", values), "next": ("F32", values[0])})
    with GGUFFile.open(path) as file:
        assert np.array_equal(file.floats("w"), values)
        resident = resident_kib(path)
        file.release("w")
        file.release("next")
        assert np.array_equal(file.floats("next"), values[0])
        if resident is not None:
            assert resident > 8000
            assert (resident_kib(path) or 0) < 1000
        assert np.array_equal(file.floats("w"), values)


def resident_kib(path: Path) -> int | None:
    """How much of a mapped file is in this process's memory; None where the system does not say."""
    smaps = Path("/proc/self/smaps")
    if not smaps.exists() or str(path) not in smaps.read_text():
        return None
    after = smaps.read_text().split(str(path))[1]
    return int(after.split("Rss:")[1].split()[0])


def test_releasing_a_tensor_smaller_than_a_page_does_nothing(file: GGUFFile) -> None:
    file.release("output_norm.weight")
    assert np.array_equal(file.floats("output_norm.weight"), tiny_weights()["output_norm.weight"])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "file: the file is empty. Download it again"),
        (b"GGU", "magic: this is a text file"),
        (b"# A model\n\nSee the manual.\n", "magic: this is a text file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "magic: this is a git-lfs pointer"),
        (struct.pack("<Q", 52) + b'{"w":{"dtype":"F32"}}', "magic: this is a safetensors file"),
        (b"PK\x03\x04" + bytes(60), "magic: this is a zip archive, probably a PyTorch checkpoint"),
        (b"<!DOCTYPE html><html>", "magic: this is a web page: the download has failed"),
        (b"tjgg" + bytes(60), "magic: this is a GGML file from before GGUF"),
        (bytes(100), "magic: this is not a GGUF file. A model in the GGUF format is needed"),
        (b"\x7fELF\x02\x01\x01" + bytes(60), "magic: this is not a GGUF file"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "version: the file is big-endian"),
        (b"GGUF" + struct.pack("<III", 1, 0, 0), "version: GGUF version 1 is not supported, only 2 and 3"),
        (b"GGUF" + struct.pack("<IQQ", 4, 0, 0), "version: GGUF version 4 is not supported, only 2 and 3"),
    ],
)
def test_a_file_of_another_kind_is_named(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=re.escape(f"model.gguf: {problem}")) as caught:
        GGUFFile.open(path)
    assert "\n" not in str(caught.value)
    assert caught.value.path == path


def test_what_is_no_file_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="file: this is a folder"):
        GGUFFile.open(tmp_path)
    with pytest.raises(ModelFileError, match="file: No such file"):
        GGUFFile.open(tmp_path / "missing.gguf")
    with pytest.raises(ModelFileError, match=r"null (byte|character)"):
        GGUFFile.open("model\0.gguf")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    with pytest.raises(ModelFileError, match="a device or a pipe"):
        GGUFFile.open(tmp_path / "pipe.gguf")


@pytest.mark.real_models
def test_a_real_model_reads_as_the_gguf_package_reads_it(real_model_path: Path) -> None:
    reader = gguf.GGUFReader(real_model_path)
    with GGUFFile.open(real_model_path) as file:
        assert list(file.metadata) == [key for key in reader.fields if not key.startswith("GGUF.")]
        for key, value in file.metadata.items():
            theirs = reader.fields[key].contents()
            ours = [text.decode() for text in value] if isinstance(value, StringArray) else plain(value)
            assert ours == theirs
        assert list(file.tensors) == [tensor.name for tensor in reader.tensors]
        for tensor in reader.tensors:
            expected = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            assert np.array_equal(file.floats(tensor.name).view(np.uint32), expected.view(np.uint32)), (
                tensor.name
            )


@pytest.mark.real_models
def test_a_real_model_opens_in_less_than_40_ms(real_model_path: Path) -> None:
    def open_ms() -> float:
        start = time.perf_counter()
        GGUFFile.open(real_model_path).close()
        return 1e3 * (time.perf_counter() - start)

    assert min(open_ms() for _ in range(10)) < 40
