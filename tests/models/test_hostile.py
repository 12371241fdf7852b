"""Files whose numbers contradict each other are refused by the key or tensor at fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.models.support import bind
from tests.support import tiny_models
from tests.support.tiny_gguf import Tensor, write_gguf
from tokenglass.errors import ModelFileError

TINY = np.float64(5e-324)
YARN: dict[str, Any] = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0}
KEYS: list[tuple[str, str, dict[str, Any]]] = [
    ("qwen2", r"scaling\.factor: is 1e-09", {"rope.scaling.factor": np.float64(1e-9)}),
    ("llama", r"scaling\.factor: is 5e-324", {**YARN, "rope.scaling.factor": TINY}),
    ("qwen3", r"yarn_beta_fast: is 5e-324", {**YARN, "rope.scaling.yarn_beta_fast": TINY}),
    ("qwen3", r"yarn_beta_slow: is 5e-324", {**YARN, "rope.scaling.yarn_beta_slow": TINY}),
    ("gemma3", r"scaling\.factor: is nan", {"rope.scaling.factor": float("nan")}),
    ("gemma3", r"freq_base_swa: is 1\.0", {"rope.freq_base_swa": 1.0}),
    ("gemma3", r"attention\.scale: is nan", {"attention.scale": float("nan")}),
    ("phi3", r"sliding_window: is -1", {"attention.sliding_window": np.int32(-1)}),
    ("phi3", r"rope_factors_\w+\.weight: is missing", {"rope.scaling.type": "longrope"}),
    ("phi3", r"sliding_window: is 1073741824", {"attention.sliding_window": 1 << 30}),
    (
        "qwen2",
        r"sliding_window_pattern: has 1 values for 2 layers",
        {"attention.sliding_window_pattern": np.array([True])},
    ),
    (
        "qwen2",
        r"sliding_window_pattern: must be an array of bool",
        {"attention.sliding_window_pattern": np.array([1, 0], np.int32)},
    ),
    (
        "gemma3",
        r"sliding_window_pattern: is 4294967295",
        {"attention.sliding_window_pattern": np.uint32(2**32 - 1)},
    ),
    ("smollm3", r"rope\.pattern: must be an integer, not a string", {"rope.pattern": "every fourth"}),
    ("llama", r"attention\.scale: 0\.5 is not supported yet", {"attention.scale": 0.5}),
    ("llama", r"logit_scale: 2\.0 is not supported yet", {"logit_scale": 2.0}),
    ("llama", r"attention\.causal: False is not supported yet", {"attention.causal": False}),
    ("gpt2", r"gpt2\.attention\.layer_norm_epsilon: is -1", {"attention.layer_norm_epsilon": -1.0}),
    ("gpt2", r"head_count_kv: 2 is not supported yet", {"attention.head_count_kv": 2}),
    ("llama", r"head_count: is 4096", {"attention.head_count": 4096, "attention.key_length": 16}),
]
TENSORS: list[tuple[str, str, dict[str, Tensor | None]]] = [
    ("llama", "rope_freqs", {"rope_freqs.weight": ("F32", np.full(8, 1e-12, np.float32))}),
    (
        "phi3",
        "rope_factors_short.weight: is missing",
        {"rope_factors_long.weight": ("F32", np.ones(8, np.float32))},
    ),
    ("qwen2", "token_embd.bias: is not known", {"token_embd.bias": ("F32", np.ones(300, np.float32))}),
    ("qwen3", "attn_k_norm.weight: is missing", {"blk.1.attn_k_norm.weight": None}),
    (
        "gpt2",
        "position_embd.weight: has shape",
        {"position_embd.weight": ("F32", np.ones((511, 64), np.float32))},
    ),
    ("gpt2", "attn_norm.bias: is missing", {"blk.0.attn_norm.bias": None}),
    (
        "gemma3",
        "post_ffw_norm.weight: has shape",
        {"blk.5.post_ffw_norm.weight": ("F32", np.ones(32, np.float32))},
    ),
]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Writes a tiny model with other keys and tensors; None removes one."""

    def write(architecture: str, keys: dict[str, Any], tensors: dict[str, Tensor | None]) -> Path:
        def changed(path: Path, of_file: dict[str, Any], stored: dict[str, Tensor]) -> Path:
            of_file |= {f"{architecture}.{key}": value for key, value in keys.items()}
            both = {**stored, **tensors}
            return write_gguf(path, of_file, {name: tensor for name, tensor in both.items() if tensor})

        monkeypatch.setattr(tiny_models, "write_gguf", changed)
        return tiny_models.write_tiny_model(tmp_path / "m.gguf", architecture)

    return write


@pytest.mark.parametrize(("architecture", "named", "keys"), KEYS, ids=str)
def test_a_number_out_of_range_is_refused_by_its_key(
    written: Any, architecture: str, named: str, keys: dict[str, Any]
) -> None:
    with pytest.raises(ModelFileError, match=named):
        bind(written(architecture, keys, {}))


@pytest.mark.parametrize(
    ("architecture", "named", "tensors"), TENSORS, ids=[named for _, named, _ in TENSORS]
)
def test_a_tensor_that_does_not_belong_is_refused_by_its_name(
    written: Any, architecture: str, named: str, tensors: dict[str, Tensor | None]
) -> None:
    with pytest.raises(ModelFileError, match=named):
        bind(written(architecture, {}, tensors))


def test_an_untouched_file_is_not_refused(written: Any) -> None:
    for architecture in tiny_models._BLOCKS:
        bind(written(architecture, {}, {}))
