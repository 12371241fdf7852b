"""Writes the tiny llama of `tiny_llama.py` as a Hugging Face folder: the same weights in another layout."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np

from tests.support.hf_tokenizer import write_tokenizer
from tests.support.tiny_llama import TinyLlama, tiny_weights

_NAMES = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    "token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head",
}  # fmt: skip


def write_tiny_folder(folder: Path, shape: TinyLlama) -> Path:
    """config.json, F32 safetensors and a tokenizer; returns the folder."""
    header, data = {}, b""
    for name, values in tiny_weights(shape).items():
        *layer, kind, _ = name.split(".")
        if kind in ("attn_q", "attn_k"):  # pairs side by side become pairs half a head apart
            values = (
                values.reshape(-1, shape.head_dim // 2, 2, shape.hidden).swapaxes(1, 2).reshape(values.shape)
            )
        prefix = f"model.layers.{layer[1]}." if layer else ""
        end = len(data) + values.nbytes
        header[f"{prefix}{_NAMES[kind]}.weight"] = {
            "dtype": "F32", "shape": values.shape, "data_offsets": [len(data), end],
        }  # fmt: skip
        data += np.ascontiguousarray(values, "<f4").tobytes()
    raw = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(raw)) + raw + data)
    config = {
        "model_type": "llama", "hidden_size": shape.hidden, "intermediate_size": shape.ffn,
        "num_hidden_layers": shape.num_layers, "num_attention_heads": shape.num_heads,
        "num_key_value_heads": shape.num_kv_heads, "head_dim": shape.head_dim, "rms_norm_eps": 1e-5,
        "rope_theta": shape.rope_freq_base, "max_position_embeddings": shape.context_length,
        "vocab_size": len(tiny_weights(shape)["token_embd.weight"]),
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    return write_tokenizer(folder, vocab_size=290)
