"""The tests' own GGUF writer writes what the `gguf` package reads, and rounds as it does."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest

from tests.support.tiny_gguf import SCALE_OFFSETS, TYPES, quantise, random_blocks, write_gguf
from tests.support.tiny_llama import TinyLlama, tiny_metadata, tiny_tokens, tiny_weights, write_tiny_llama


def test_the_gguf_package_reads_the_tiny_model_back(tmp_path: Path) -> None:
    reader = gguf.GGUFReader(write_tiny_llama(tmp_path / "tiny.gguf", weight_type="F32"))
    weights = tiny_weights()
    assert [tensor.name for tensor in reader.tensors] == list(weights)
    for tensor in reader.tensors:
        assert np.array_equal(tensor.data, weights[tensor.name])
    for key, value in tiny_metadata().items():
        assert reader.fields[key].contents() == (pytest.approx(value) if isinstance(value, float) else value)


def test_equal_arguments_give_equal_bytes(tmp_path: Path) -> None:
    first = write_tiny_llama(tmp_path / "a.gguf", weight_type="Q4_0").read_bytes()
    assert first == write_tiny_llama(tmp_path / "a.gguf", weight_type="Q4_0").read_bytes()
    assert (
        first
        != write_tiny_llama(tmp_path / "c.gguf", weight_type="Q4_0", shape=TinyLlama(seed=1)).read_bytes()
    )


def test_types_and_metadata_can_be_chosen(tmp_path: Path) -> None:
    path = write_tiny_llama(
        tmp_path / "mixed.gguf",
        weight_type="F16",
        types={"blk.*.attn_?.weight": "Q4_1", "blk.0.attn_v.weight": "Q8_0"},
        metadata={"general.name": None, "llama.context_length": 64},
    )
    reader = gguf.GGUFReader(path)
    types = {tensor.name: tensor.tensor_type.name for tensor in reader.tensors}
    assert types["blk.0.attn_v.weight"] == "Q8_0"
    assert types["blk.1.attn_v.weight"] == "Q4_1"
    assert types["blk.1.ffn_up.weight"] == "F16"
    assert types["output_norm.weight"] == "F32"
    assert "general.name" not in reader.fields
    assert reader.fields["llama.context_length"].contents() == 64


def test_a_wide_model_takes_the_k_types(tmp_path: Path) -> None:
    shape = TinyLlama(hidden=256, num_heads=4, num_kv_heads=2, head_dim=64, ffn=512)
    path = write_tiny_llama(
        tmp_path / "wide.gguf", weight_type="Q4_K", types={"token_embd*": "Q6_K"}, shape=shape
    )
    types = {tensor.name: tensor.tensor_type.name for tensor in gguf.GGUFReader(path).tensors}
    assert (types["token_embd.weight"], types["blk.0.ffn_down.weight"]) == ("Q6_K", "Q4_K")


def test_the_vocabulary_has_every_byte_and_every_merge_product() -> None:
    tokens, merges = tiny_tokens()
    assert len(tokens) == len(set(tokens)) == 300
    assert tokens[3:259] == [character for _, character in sorted(byte_map().items())]
    assert [merge.replace(" ", "") for merge in merges] == tokens[259:]


def byte_map() -> dict[int, str]:
    """GPT-2's table, written another way: printable bytes keep their character, others count from 256."""
    printable = [byte for byte in range(256) if chr(byte).isprintable() and byte not in (0x20, 0xA0, 0xAD)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}


@pytest.mark.parametrize("type_name", ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"])
def test_quantisers_round_to_within_a_step(type_name: str) -> None:
    values = np.random.default_rng(3).standard_normal((8, 64)).astype(np.float32)
    values[0] = 0
    raw = np.frombuffer(quantise(type_name, values), np.uint8).reshape(8, -1)
    back = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType(TYPES[type_name][0])).reshape(8, 64)
    steps = {
        "F32": 0.0,
        "F16": 2e-3,
        "BF16": 2e-2,
        "Q4_0": 0.6,
        "Q4_1": 0.3,
        "Q5_0": 0.3,
        "Q5_1": 0.15,
        "Q8_0": 0.03,
    }
    assert np.abs(back - values).max() <= steps[type_name]
    assert not back[0].any()


@pytest.mark.parametrize("type_name", ["F32", "F16", "BF16", *SCALE_OFFSETS])
def test_random_blocks_are_finite(type_name: str) -> None:
    raw = random_blocks(type_name, 64, np.random.default_rng(0))
    values = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType(TYPES[type_name][0]))
    assert np.isfinite(values).all()
    assert values.any()


def test_raw_tensors_and_alignment_are_written_as_given(tmp_path: Path) -> None:
    raw = random_blocks("Q6_K", 2, np.random.default_rng(0)).tobytes()
    path = write_gguf(
        tmp_path / "raw.gguf", {"n": np.int64(-5)}, {"w": ("Q6_K", (2, 256), raw)}, alignment=64
    )
    reader = gguf.GGUFReader(path)
    assert reader.alignment == 64
    assert reader.tensors[0].data.tobytes() == raw
    assert reader.fields["n"].contents() == -5
