"""Tiny random models of architectures that have no file in `models/`: folders written by Transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.hf_models import VOCAB
from tests.support.hf_tokenizer import write_tokenizer

_COMMON = {"vocab_size": VOCAB, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
_SIZES = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
KINDS: dict[str, dict[str, Any]] = {
    "llama": {**_SIZES, "intermediate_size": 96, "num_key_value_heads": 2, "max_position_embeddings": 256},
    "opt": {**_SIZES, "ffn_dim": 96, "word_embed_proj_dim": 64, "max_position_embeddings": 256},
    "gpt_neox": {**_SIZES, "intermediate_size": 96, "max_position_embeddings": 256},
    "mixtral": {**_SIZES, "intermediate_size": 96, "num_key_value_heads": 2, "num_local_experts": 4},
    "gemma2": {
        **_SIZES, "intermediate_size": 96, "num_key_value_heads": 2, "head_dim": 16, "sliding_window": 16,
    },
    "phi3": {
        **_SIZES, "intermediate_size": 96, "num_key_value_heads": 2, "max_position_embeddings": 256,
        "original_max_position_embeddings": 20,
        "rope_parameters": {
            "rope_type": "longrope", "rope_theta": 5000.0, "short_factor": [1.0 + i / 10 for i in range(8)],
            "long_factor": [1.0 + i for i in range(8)], "original_max_position_embeddings": 20,
        },
    },
    "mamba": {"hidden_size": 64, "num_hidden_layers": 2, "state_size": 8},
    "jamba": {
        **_SIZES, "intermediate_size": 96, "num_key_value_heads": 2, "num_hidden_layers": 8,
        "num_experts": 2, "mamba_d_state": 8,
    },
    "rwkv": {"hidden_size": 64, "num_hidden_layers": 2, "attention_hidden_size": 64, "context_length": 256},
}  # fmt: skip


def save_foreign(kind: str, folder: Path, **settings: Any) -> Path:
    """Writes the model, its weights six times as large as at first (else all tokens are alike), and the tiny
    tokenizer; its own end is out of the way. Returns the folder.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model(kind, **{**_COMMON, **KINDS.get(kind, {}), **settings})
    torch.manual_seed(0)
    of_config: Any = AutoModelForCausalLM.from_config
    model = of_config(config, dtype=torch.float32)
    with torch.no_grad():
        for values in model.parameters():
            if values.ndim > 1:
                values.mul_(6)
    model.save_pretrained(folder)
    write_tokenizer(folder)
    (folder / "generation_config.json").unlink()
    return folder


def reference(folder: Path) -> Any:
    """The same model, loaded by Transformers alone."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder)
    model.generation_config.eos_token_id = None
    return model
