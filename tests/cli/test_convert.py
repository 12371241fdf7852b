"""`tokenglass convert`: files that others read, and the same answers before and after."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from tests.cli.conftest import Command
from tests.support.hf_folder import write_tiny_folder
from tests.support.tiny_llama import TinyLlama, write_tiny_llama
from tokenglass.engine import Request, load
from tokenglass.formats import GGUFFile, StringArray, open_model

SHAPE = TinyLlama(tied=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_folder(tmp_path_factory.mktemp("tiny-llama"), SHAPE)


def answer(path: Path, **options: Any) -> list[int]:
    engine = load(path, num_threads=1, **options)
    ids = engine.tokenizer.encode("The capital of France")
    return [i for piece in engine.stream(Request(prompt_ids=ids, max_tokens=16)) for i in piece.token_ids]


def test_a_folder_becomes_a_gguf_that_others_read(folder: Path, tmp_path: Path, tokenglass_: Command) -> None:
    path = tmp_path / "tiny.gguf"
    outcome = tokenglass_("convert", folder, path)
    assert (outcome.status, outcome.out) == (0, "")
    assert outcome.err == "tiny.gguf: 0.4 MB\n"
    assert os.listdir(tmp_path) == ["tiny.gguf"]
    reader = gguf.GGUFReader(path)
    assert reader.fields["general.architecture"].contents() == "llama"
    assert len(reader.fields["tokenizer.ggml.tokens"].contents()) == len(reader.tensors[0].data)
    with open_model(folder) as source:
        for tensor in reader.tensors:
            expected = source.floats(tensor.name)
            assert np.array_equal(gguf.quants.dequantize(tensor.data, tensor.tensor_type), expected)
    assert answer(path) == answer(folder)
    assert load(path).tokenizer.chat is not None


@pytest.mark.parametrize("form", ["bf16", "q8", "q4"])
def test_weights_made_when_converting_are_those_made_when_loading(
    folder: Path, tmp_path: Path, tokenglass_: Command, form: str
) -> None:
    path = tmp_path / "tiny.gguf"
    assert (
        "16 tensors of type F32" in tokenglass_("convert", folder, path, "--weights", form).err
        or form == "q4"
    )
    assert answer(path) == answer(folder, weights=form)


def test_a_gguf_becomes_one_with_the_same_metadata(tmp_path: Path, tokenglass_: Command) -> None:
    source = write_tiny_llama(tmp_path / "a.gguf", weight_type="Q4_1", metadata={"more": np.int64(-(2**40))})
    assert tokenglass_("convert", source, tmp_path / "b.gguf").status == 0
    with GGUFFile.open(source) as a, GGUFFile.open(tmp_path / "b.gguf") as b:
        for key, value in a.metadata.items():
            other = b.metadata[key]
            if key == "general.file_type":
                assert other == 3
            elif isinstance(value, StringArray):
                assert isinstance(other, StringArray)
                assert other.to_list() == value.to_list()
            else:
                assert np.array_equal(np.asarray(other), np.asarray(value))
        assert all(np.array_equal(a.raw(name), b.raw(name)) for name in a.tensors)


def test_safetensors_and_back_are_the_same_weights(
    folder: Path, tmp_path: Path, tokenglass_: Command
) -> None:
    source = write_tiny_llama(tmp_path / "a.gguf", shape=SHAPE)
    back = tmp_path / "back"
    shutil.copytree(folder, back)
    (back / "model.safetensors").unlink()
    outcome = tokenglass_("convert", source, back / "model.safetensors")
    assert "the weights alone: an OUTPUT without .safetensors" in outcome.err
    with open_model(source) as a, open_model(back) as b:
        assert a.tensors.keys() == b.tensors.keys()
        assert all(np.array_equal(a.floats(name), b.floats(name)) for name in a.tensors)


def test_show_reads_a_folder(folder: Path, tmp_path: Path, tokenglass_: Command) -> None:
    assert tokenglass_("convert", folder, tmp_path / "my.gguf").status == 0
    facts, of_file = (
        tokenglass_("models", "show", path, "--json").json for path in (folder, tmp_path / "my.gguf")
    )
    for key in ("architecture", "parameters", "types", "layers", "embedding_length"):
        assert facts[key] == of_file[key]
    assert facts["chat_template"] is None  # its tokenizer is in files of its own
    assert facts["num_bytes"] > of_file["parameters"]


@pytest.mark.oracle
def test_transformers_reads_what_was_written(folder: Path, tmp_path: Path, tokenglass_: Command) -> None:
    import torch
    from safetensors.torch import load_file

    source = write_tiny_llama(tmp_path / "a.gguf", shape=SHAPE, weight_type="Q8_0")
    assert (
        "16 tensors of type Q8_0 are loaded as F32"
        in tokenglass_("convert", source, tmp_path / "a.safetensors").err
    )
    tensors = load_file(tmp_path / "a.safetensors")
    original = load_file(folder / "model.safetensors")
    assert tensors.keys() == original.keys()
    assert all(torch.allclose(tensors[name], original[name], atol=0.02) for name in tensors)


@pytest.mark.peers
def test_llama_cpp_continues_as_we_do(folder: Path, tmp_path: Path, tokenglass_: Command) -> None:
    import llama_cpp

    path = tmp_path / "tiny.gguf"
    tokenglass_("convert", folder, path)
    peer = llama_cpp.Llama(str(path), n_ctx=64, n_threads=1, verbose=False)
    ids = load(path).tokenizer.encode("The capital of France")
    assert peer.tokenize(b"The capital of France", add_bos=False) == ids
    theirs = [
        token for token, _ in zip(peer.generate(ids, temp=0.0, repeat_penalty=1.0), range(8), strict=False)
    ]
    assert answer(path, activations="f32", kv="f32")[:8] == theirs


@pytest.mark.parametrize(
    ("output", "more", "problem"),
    [
        ("a.bin", [], "OUTPUT must end in .gguf or .safetensors, or be the name of a folder"),
        ("a.safetensors", ["--weights", "q8"], "--weights q8 and q4 are blocks"),
        ("none/a.gguf", [], "cannot write "),
    ],
)
def test_what_cannot_be_written_is_refused(
    folder: Path, tmp_path: Path, tokenglass_: Command, output: str, more: list[str], problem: str
) -> None:
    (tmp_path / "there.gguf").write_bytes(b"mine")
    outcome = tokenglass_("convert", folder, tmp_path / output, *more)
    assert outcome.error.startswith(problem)
    assert os.listdir(tmp_path) == ["there.gguf"]
    assert (tmp_path / "there.gguf").read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["there.gguf", "there"])
def test_what_is_there_is_named_and_stays(
    folder: Path, tmp_path: Path, tokenglass_: Command, name: str
) -> None:
    (tmp_path / name).write_bytes(b"mine")
    problem = f"OUTPUT {tmp_path / name} exists already. Name another, or remove it"
    assert tokenglass_("convert", folder, tmp_path / name).error == problem
    assert (tmp_path / name).read_bytes() == b"mine"


def test_a_folder_becomes_one_in_another_form(folder: Path, tmp_path: Path, tokenglass_: Command) -> None:
    outcome = tokenglass_("convert", folder, tmp_path / "half", "--weights", "bf16")
    assert outcome.err.splitlines() == ["16 tensors of type F32 are loaded as BF16", "half: 0.2 MB"]
    files = {path.name for path in folder.iterdir()}
    assert {path.name for path in (tmp_path / "half").iterdir()} == files
    assert os.listdir(tmp_path) == ["half"]
    assert answer(tmp_path / "half") == answer(folder, weights="bf16")


def test_a_gguf_becomes_a_folder_that_answers_alike(tmp_path: Path, tokenglass_: Command) -> None:
    source = write_tiny_llama(tmp_path / "a.gguf", shape=SHAPE, weight_type="Q8_0")
    assert tokenglass_("convert", source, tmp_path / "folder").status == 0
    assert {path.name for path in (tmp_path / "folder").iterdir()} == {
        "config.json", "generation_config.json", "model.safetensors", "tokenizer.json",
        "tokenizer_config.json", "chat_template.jinja",
    }  # fmt: skip
    assert answer(tmp_path / "folder", activations="f32") == answer(source, activations="f32")


def test_what_a_folder_cannot_say_is_refused_and_leaves_nothing(tmp_path: Path, tokenglass_: Command) -> None:
    window = {"sliding_window": np.uint32(16), "sliding_window_pattern": np.array([True, False])}
    keys = {f"llama.attention.{key}": value for key, value in window.items()}
    source = write_tiny_llama(tmp_path / "a.gguf", metadata=keys)
    problem = "a.gguf: windows: cannot be said in a config.json"
    assert tokenglass_("convert", source, tmp_path / "out").error == problem
    assert os.listdir(tmp_path) == ["a.gguf"]


def test_a_large_file_says_how_far_it_is(
    folder: Path, tmp_path: Path, tokenglass_: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tokenglass.cli.convert.MIN_BYTES", 0)
    lines = tokenglass_("convert", folder, tmp_path / "a.gguf").err.splitlines()
    assert lines[:3] == [f"{percent}% of 0 MB written" for percent in (25, 50, 75)]


def test_a_full_disk_leaves_nothing_behind(
    folder: Path, tmp_path: Path, tokenglass_: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", full)
    outcome = tokenglass_("convert", folder, tmp_path / "a.gguf")
    assert outcome.status == 1
    assert "No space left on device" in outcome.error
    assert os.listdir(tmp_path) == []
