"""A Hugging Face folder as a GGUF: names and keys against the `gguf` package, layouts, refusals."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from tokenglass.errors import ModelFileError
from tokenglass.formats import BlockType, open_model
from tokenglass.formats.hf_config import metadata_of
from tokenglass.formats.hf_folder import HFFolder
from tokenglass.formats.hf_names import ARCHITECTURES

LLAMA: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1,
    "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64, "rms_norm_eps": 1e-6,
    "vocab_size": 5, "rope_theta": 500000, "hidden_act": "silu",
}  # fmt: skip
GPT2: dict[str, Any] = {
    "model_type": "gpt2", "n_embd": 4, "n_layer": 1, "n_head": 2, "n_positions": 9, "vocab_size": 5,
    "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new",
}  # fmt: skip


def write_folder(folder: Path, config: Any, tensors: dict[str, NDArray[np.float32]]) -> Path:
    """A folder with F32 tensors."""
    (folder / "config.json").write_text(json.dumps(config))
    header, data = {}, b""
    for name, values in tensors.items():
        end = len(data) + values.nbytes
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [len(data), end]}
        data += values.astype("<f4").tobytes()
    raw = json.dumps(header).encode()
    (folder / "model.safetensors").unlink(missing_ok=True)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(raw)) + raw + data)
    return folder


def counted(*shape: int) -> NDArray[np.float32]:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize(
    "architecture", list({a.name: a for a in ARCHITECTURES.values()}.values()), ids=lambda value: value.name
)
def test_names_are_those_of_the_gguf_package(architecture: Any) -> None:
    kind = {name: key for key, name in gguf.MODEL_ARCH_NAMES.items()}[architecture.name]
    theirs = gguf.get_tensor_name_map(kind, 12)
    for name in architecture.names.values():
        for last in ("weight", "bias"):
            full = f"{name.replace('{i}', '11')}.{last}"
            expected = theirs.get_name(full, try_suffixes=(".weight", ".bias"))
            assert architecture.gguf_name(full) == expected
            assert architecture.gguf_name(full.removeprefix(architecture.prefix)) == expected
            assert architecture.hf_name(expected) == full
    for name in (
        "model.layers.01.mlp.up_proj.weight",
        "model.norm",
        "model.norm.scale",
        "",
        "blk.0.x.weight",
    ):
        assert architecture.gguf_name(name) is None
        assert architecture.hf_name(name) is None


def test_keys_are_those_of_a_gguf() -> None:
    keys = metadata_of({**LLAMA, "head_dim": 6}, Path("config.json"), "tiny")
    assert keys == {
        "general.architecture": "llama", "general.type": "model", "general.name": "tiny",
        "llama.block_count": 1, "llama.context_length": 64, "llama.embedding_length": 8,
        "llama.feed_forward_length": 12, "llama.attention.head_count": 2,
        "llama.attention.head_count_kv": 1, "llama.attention.key_length": 6,
        "llama.attention.value_length": 6, "llama.attention.layer_norm_rms_epsilon": 1e-6,
        "llama.vocab_size": 5, "llama.rope.dimension_count": 6, "llama.rope.freq_base": 500000.0,
    }  # fmt: skip
    assert type(keys["llama.rope.freq_base"]) is float


def test_scaled_rotation_is_passed_on_by_name() -> None:
    yarn = {"type": "yarn", "factor": 4, "original_max_position_embeddings": 16, "beta_fast": 32}
    keys = metadata_of({**LLAMA, "rope_scaling": yarn}, Path("config.json"), "tiny")
    assert {key: value for key, value in keys.items() if "scaling" in key} == {
        "llama.rope.scaling.type": "yarn",
        "llama.rope.scaling.factor": 4.0,
        "llama.rope.scaling.original_context_length": 16,
        "llama.rope.scaling.attn_factor": 1.0,
        "llama.rope.scaling.yarn_beta_fast": 32.0,
        "llama.rope.scaling.yarn_beta_slow": 1.0,
    }
    assert keys["llama.context_length"] == max(LLAMA["max_position_embeddings"], 64)
    gemma = {
        **LLAMA, "model_type": "gemma3_text", "sliding_window": 512, "query_pre_attn_scalar": 16,
        "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        },
    }  # fmt: skip
    keys = metadata_of(gemma, Path("config.json"), "tiny")
    assert keys["gemma3.attention.sliding_window"] == 512
    assert (keys["gemma3.rope.freq_base"], keys["gemma3.rope.freq_base_swa"]) == (1e6, 1e4)
    assert keys["gemma3.attention.scale"] == 0.25


def test_rows_of_a_llama_are_put_in_the_order_of_a_gguf(tmp_path: Path) -> None:
    tensors = {
        "model.layers.0.self_attn.q_proj.weight": counted(8, 8),
        "model.layers.0.self_attn.k_proj.weight": counted(4, 8),
        "model.layers.0.self_attn.v_proj.weight": counted(4, 8),
        "model.layers.0.self_attn.rotary_emb.inv_freq": counted(2),
        "model.norm.weight": counted(8),
    }
    with open_model(write_folder(tmp_path, LLAMA, tensors)) as model:
        assert list(model.tensors) == [
            "blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight", "output_norm.weight",
        ]  # fmt: skip
        # two heads of four: rows 0 and 2 turn together, and 1 and 3
        assert (model.floats("blk.0.attn_q.weight")[:, 0] / 8).tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
        assert (model.floats("blk.0.attn_k.weight")[:, 0] / 8).tolist() == [0, 2, 1, 3]
        assert np.array_equal(model.floats("blk.0.attn_v.weight"), counted(4, 8))
        assert np.array_equal(model.floats("output_norm.weight"), counted(8))
        model.release("blk.0.attn_q.weight")


def test_gpt2s_matrices_are_turned_and_its_mask_is_left_out(tmp_path: Path) -> None:
    tensors = {
        "transformer.wte.weight": counted(5, 4),
        "h.0.attn.c_attn.weight": counted(4, 12),
        "h.0.attn.c_attn.bias": counted(12),
        "h.0.attn.bias": counted(1, 9),
    }
    with HFFolder(write_folder(tmp_path, GPT2, tensors)) as model:
        assert list(model.tensors) == ["token_embd.weight", "blk.0.attn_qkv.weight", "blk.0.attn_qkv.bias"]
        assert np.array_equal(model.floats("blk.0.attn_qkv.weight"), counted(4, 12).T)
        assert np.array_equal(model.floats("blk.0.attn_qkv.bias"), counted(12))


def test_gemmas_norms_get_their_one(tmp_path: Path) -> None:
    config = {**LLAMA, "model_type": "gemma3_text", "hidden_activation": "gelu_pytorch_tanh"}
    tensors = {"model.norm.weight": counted(8), "model.embed_tokens.weight": counted(5, 8)}
    with HFFolder(write_folder(tmp_path, config, tensors)) as model:
        assert np.array_equal(model.floats("output_norm.weight"), counted(8) + 1)
        assert np.array_equal(model.floats("token_embd.weight"), counted(5, 8))
        assert model.tensors["output_norm.weight"].type is BlockType.F32


# settings beside the usual ones as published models have them, and keys that must come of them
PUBLISHED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"model_type": "qwen2", "use_mrope": False, "sliding_window": 32768, "use_sliding_window": False,
      "max_window_layers": 28}, {"qwen2.attention.sliding_window": None}),
    ({"model_type": "qwen3", "head_dim": 128, "attention_bias": False, "rope_scaling": None,
      "sliding_window": None, "use_sliding_window": False}, {"qwen3.attention.key_length": 128}),
    ({"model_type": "smollm3", "num_hidden_layers": 4, "no_rope_layers": [1, 1, 1, 0],
      "layer_types": ["full_attention"] * 4, "pretraining_tp": 2, "use_sliding_window": False},
     {"smollm3.rope.pattern": None}),
    ({"is_llama_config": True, "rope_interleaved": False, "transformers.js_config": {}}, {}),
    ({"model_type": "mistral", "sliding_window": None}, {"llama.attention.sliding_window": None}),
    ({"model_type": "mistral"}, {"llama.attention.sliding_window": 4096}),
    ({"model_type": "gemma3_text", "hidden_activation": "gelu_pytorch_tanh", "cache_implementation": "hybrid",
      "attn_logit_softcapping": None, "final_logit_softcapping": None, "rope_local_base_freq": 10000,
      "sliding_window": 512, "sliding_window_pattern": 6, "query_pre_attn_scalar": 256, "head_dim": 256},
     {"gemma3.attention.sliding_window": 512, "gemma3.rope.freq_base_swa": 10000.0,
      "gemma3.attention.scale": None, "gemma3.attention.sliding_window_pattern": None}),
    ({"model_type": "phi3", "auto_map": {}, "full_attn_mod": 1, "interpolate_factor": 1, "hidden_size": 64,
      "lm_head_bias": False, "partial_rotary_factor": 0.75, "original_max_position_embeddings": 32,
      "sliding_window": 262144,
      "rope_scaling": {"type": "longrope", "short_factor": [1.0] * 12, "long_factor": [1.5] * 12}},
     {"phi3.rope.dimension_count": 24, "phi3.rope.scaling.original_context_length": 32}),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "expected"), PUBLISHED, ids=str)
def test_settings_of_published_models_are_read(settings: dict[str, Any], expected: dict[str, Any]) -> None:
    layers = settings.get("num_hidden_layers", 6)
    config = {**LLAMA, "num_hidden_layers": layers, **settings}
    keys = metadata_of(config, Path("config.json"), "tiny")
    assert {key: keys.get(key) for key in expected} == expected


NORM = {"model.norm.weight": counted(8)}


@pytest.mark.parametrize(
    ("changes", "field", "problem"),
    [
        ({"model_type": "mamba"}, "model_type", "mamba is not supported yet"),
        ({"model_type": None}, "model_type", "None is not supported yet"),
        ({"model_type": ["llama"]}, "model_type", "not supported yet"),
        ({"quantization_config": {"bits": 4}}, "quantization_config", "the weights are quantised in a way"),
        ({"hidden_act": "gelu"}, "hidden_act", "gelu is not supported yet"),
        ({"rope_scaling": {"type": "yarn", "factor": 2, "truncate": False}}, "truncate", "False is not"),
        ({"rope_scaling": {"type": "yarn", "factor": -2}}, "factor", "is -2"),
        ({"hidden_size": "8"}, "hidden_size", "is 8, expected 1 to"),
        ({"hidden_size": None}, "hidden_size", "is missing"),
        ({"hidden_size": True}, "hidden_size", "is True, expected 1 to"),
        ({"num_attention_heads": 0}, "num_attention_heads", "is 0, expected 1 to"),
        ({"num_hidden_layers": 2**63}, "num_hidden_layers", "expected 1 to"),
        ({"rms_norm_eps": "small"}, "rms_norm_eps", "is small, and a number is needed"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps", "is nan, and a number is needed"),
        ({"rms_norm_eps": float("inf")}, "rms_norm_eps", "is inf, and a number is needed"),
        ({"rope_scaling": []}, "rope_scaling", "must be a JSON object"),
        ({"rope_scaling": {"rope_type": 3}}, "rope_type", "must be a string"),
        ({"rope_scaling": {"rope_type": "llama3"}}, "factor", "is missing"),
        ({"model_type": "gemma3_text", "layer_types": ["chunked"]}, "layer_types", "must be a list of 1"),
        ({"model_type": "gemma3_text", "layer_types": {}}, "layer_types", "must be a list of 1"),
        ({"num_hidden_layers": 2**30}, "num_hidden_layers", "expected 1 to 1024"),
        ({"layer_types": ["sliding_attention"]}, "layer_types", "differs from layer to layer"),
        ({"model_type": "qwen2", "layer_types": ["sliding_attention"]}, "layer_types", "no window is set"),
        ({"model_type": "qwen2", "use_sliding_window": "no"}, "use_sliding_window", "must be true or false"),
        ({"model_type": "smollm3", "no_rope_layers": []}, "no_rope_layers", "must be a list of 1"),
        ({"model_type": "smollm3", "no_rope_layers": [2]}, "no_rope_layers", "must be a list of 1"),
        (
            {"rope_scaling": {"type": "dynamic", "factor": 2, "alpha": 1000}},
            "alpha",
            "is not a known setting",
        ),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor", "0.5 is not supported yet"),
        ({"num_local_experts": 8}, "num_local_experts", "8 is not supported yet"),
        ({"final_logit_softcapping": 30.0}, "final_logit_softcapping", "30.0 is not supported yet"),
        (
            {"model_type": "gemma3_text", "rope_parameters": {"sliding_attention": {"rope_type": "linear"}}},
            "rope_type",
            "linear is not supported yet",
        ),
    ],
)
def test_settings_that_are_wrong_or_not_supported_are_named(
    tmp_path: Path, changes: dict[str, Any], field: str, problem: str
) -> None:
    config = {**LLAMA, "hidden_activation": "gelu_pytorch_tanh", **changes}
    with pytest.raises(ModelFileError, match=problem) as caught:
        HFFolder(write_folder(tmp_path, config, NORM))
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("tensors", "problem"),
    [
        ({"model.layers.0.mlp.fc.weight": counted(2, 2)}, "is not known in the architecture llama"),
        ({"model.layers.0.self_attn.q_proj.weight": counted(6, 8)}, "has 6 rows, expected 2 heads of 4"),
        ({"model.norm.weight": counted(8), "norm.weight": counted(8)}, "tensor norm.weight: appears twice"),
        ({"model.norm.weight": counted(2, 2, 2)}, "is not supported yet"),
        ({"model.norm.weight": counted(0)}, "is not supported yet"),
    ],
)
def test_tensors_that_do_not_belong_are_named(
    tmp_path: Path, tensors: dict[str, NDArray[np.float32]], problem: str
) -> None:
    with pytest.raises(ModelFileError, match=problem):
        HFFolder(write_folder(tmp_path, LLAMA, tensors))


def test_a_folder_that_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"config\.json: file: No such file"):
        HFFolder(tmp_path)
    with pytest.raises(ModelFileError, match="this is a folder"):
        open_model(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(ModelFileError, match="must be a JSON object"):
        open_model(tmp_path)


def test_a_config_cut_at_any_byte_is_refused(tmp_path: Path) -> None:
    path = write_folder(tmp_path, LLAMA, NORM) / "config.json"
    HFFolder(tmp_path).close()
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(ModelFileError, match=r"^config\.json: file: "):
            HFFolder(tmp_path)
    for odd in (b'{"model_type": "llama", "model_type": "qwen2"}', b"\xff\xfe{}", b'{"a":' * 100_000):
        path.write_bytes(odd)
        with pytest.raises(ModelFileError, match=r"^config\.json: file: "):
            HFFolder(tmp_path)
