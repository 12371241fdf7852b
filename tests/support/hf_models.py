"""Tiny random models written by Transformers (`save_pretrained`), one of each architecture we read.

Sizes are odd where a model may have them so: 3 layers, 6 heads over 2, a feed-forward of 160, 313 tokens.
Norms and biases are drawn too: as they are initialised, a forgotten one would change nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

VOCAB = 313
_COMMON = {
    "vocab_size": VOCAB, "hidden_size": 96, "intermediate_size": 160, "num_hidden_layers": 3,
    "num_attention_heads": 6, "num_key_value_heads": 2, "max_position_embeddings": 512, "bos_token_id": 1,
    "eos_token_id": 2, "pad_token_id": 0, "attn_implementation": "eager",
}  # fmt: skip
_MORE: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {"sliding_window": None},
    "smollm3": {"num_hidden_layers": 5},
    "qwen2": {"use_sliding_window": False},
    "qwen3": {"head_dim": 32},
    "gemma3_text": {
        "head_dim": 32,
        "query_pre_attn_scalar": 32,
        "sliding_window": 64,
        "num_hidden_layers": 7,
    },
    "phi3": {"pad_token_id": 0},
    "gpt2": {},
}
_GPT2 = {"vocab_size": VOCAB, "n_embd": 96, "n_layer": 3, "n_head": 6, "n_positions": 512}


def tiny_model(kind: str, *, seed: int = 0, **settings: Any) -> Any:
    """A model of `model_type` kind, float32, ready to compute. `settings` go over the usual ones."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    common = _GPT2 if kind == "gpt2" else _COMMON
    config = AutoConfig.for_model(kind, **{**common, **_MORE[kind], **settings})
    torch.manual_seed(seed)
    of_config: Any = AutoModelForCausalLM.from_config
    model = of_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for name, values in model.named_parameters():
            if values.ndim == 1:
                values.copy_(torch.rand_like(values) + (0 if "bias" in name or "gemma" in kind else 0.5))
            else:
                values.mul_(6)  # 0.02 at first: attention would be flat, and every error small
    return model


def save_model(model: Any, folder: Path, *, form: str = "safetensors") -> Path:
    """Writes it as `safetensors`, `shards` or `bin`, with its config.json; returns the folder."""
    import torch

    size = "100KB" if form == "shards" else "5GB"
    model.save_pretrained(folder, max_shard_size=size)
    if form == "bin":
        (folder / "model.safetensors").unlink()
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    return folder
