"""Every key that the `gguf` package knows of a decoder is used, refused, or of kinds that we do not run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from tests.models.support import all_logits, bind
from tests.support import tiny_models
from tests.support.tiny_gguf import Tensor, write_gguf
from tokenglass.errors import ModelFileError
from tokenglass.models.registry import ARCHITECTURES

IDS = [int(i) for i in np.random.default_rng(7).integers(3, 300, 40)]
HARMLESS = {
    # of experts, where there are none
    "leading_dense_block_count", "expert_feed_forward_length", "expert_shared_feed_forward_length",
    "expert_chunk_feed_forward_length", "expert_used_count", "expert_group_count", "expert_group_used_count",
    "expert_weights_scale", "expert_weights_norm", "expert_gating_func", "expert_group_scale",
    "experts_per_group", "moe_every_n_layers", "moe_latent_size", "interleave_moe_layer_step",
    # of encoders, state spaces, images, sounds: models whose other tensors or architecture are refused
    "embedding_length_out", "features_length", "n_deepstack_layers", "pooling_type", "decoder_start_token_id",
    "decoder_block_count", "time_mix_extra_dim", "time_decay_extra_dim", "token_shift_count",
    "full_attention_interval", "altup.active_idx", "altup.num_inputs", "embedding_length_per_layer_input",
    "{dense}_feat_in", "{dense}_feat_out", "attention.group_norm_epsilon", "attention.group_norm_groups",
    "attention.decay_lora_rank", "attention.iclr_lora_rank", "attention.value_residual_mix_lora_rank",
    "attention.gate_lora_rank", "attention.relative_buckets_count", "attention.key_length_mla",
    "attention.value_length_mla",
    # the engine's, or said again by tensors or other keys
    "context_length", "vocab_size", "rope.scaling.finetuned", "attention.temperature_length",
}  # fmt: skip
# as sound files have them, where that is not a number; the others become 3
VALUES: dict[str, Any] = {
    "tensor_data_layout": "other", "rope.scaling.type": "linear", "attention.causal": False,
    "use_parallel_residual": True, "rope.dimension_sections": np.array([8, 8], np.int32),
    "attention.sliding_window_pattern": np.array([True, False, True, False, True, False]),
}  # fmt: skip
# beside them every key shows
BASE: dict[str, Any] = {
    "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 64,
    "attention.sliding_window": 8,
    "attention.sliding_window_pattern": np.array([True, True, True, True, True, False]),
}  # fmt: skip


def has_no_meaning(key: str, architecture: str) -> bool:
    """gpt2 neither turns nor slides, and has another norm than the others."""
    if architecture == "gpt2":
        return key.startswith(("rope.", "attention.sliding_window")) or key.endswith("rms_epsilon")
    return key == "attention.layer_norm_epsilon"


def known_keys() -> list[str]:
    groups = (gguf.Keys.LLM, gguf.Keys.Attention, gguf.Keys.Rope)
    keys = [key for group in groups for name, key in vars(group).items() if name.isupper()]
    return sorted(key.removeprefix("{arch}.") for key in keys)


def outcome(path: Path) -> tuple[str, Any]:
    try:
        model = bind(path, num_threads=1, num_pages=4, max_rows=64)
    except ModelFileError as error:
        return "refused", error.field
    return "runs", all_logits(model, IDS).tobytes()


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_a_key_is_used_or_refused_or_harmless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, architecture: str
) -> None:
    more = {f"{architecture}.{key}": value for key, value in BASE.items()}

    def with_more(path: Path, metadata: dict[str, Any], tensors: dict[str, Tensor]) -> Path:
        path.unlink(missing_ok=True)
        return write_gguf(path, {**metadata, **more}, tensors)

    monkeypatch.setattr(tiny_models, "write_gguf", with_more)
    monkeypatch.setattr(tiny_models, "NUM_LAYERS", dict.fromkeys(ARCHITECTURES, 6))

    def found() -> tuple[str, Any]:
        return outcome(tiny_models.write_tiny_model(tmp_path / "m.gguf", architecture))

    usual, ignored = found(), []
    assert usual[0] == "runs"
    for key in known_keys():
        if key in HARMLESS or has_no_meaning(key, architecture):
            continue
        whole = np.uint32(3) if key.endswith(("count", "length", "window", "sections", "layers")) else 3.0
        more |= {f"{architecture}.{key}": VALUES.get(key, whole)}
        if found() == usual:
            ignored.append(key)
        del more[f"{architecture}.{key}"]
        more |= {f"{architecture}.{key}": value for key, value in BASE.items()}
    assert not ignored
