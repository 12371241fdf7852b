"""Writes a tiny random GGUF of every architecture, without torch; the vocabulary is `tiny_llama.py`'s."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

from tests.support.tiny_gguf import Tensor, write_gguf
from tests.support.tiny_llama import tiny_metadata, tiny_tokens

HIDDEN, FFN, HEADS, KV_HEADS, HEAD_DIM, CONTEXT = 64, 96, 4, 2, 16, 512
NUM_LAYERS = {"gemma3": 6, "smollm3": 4}  # the last is of another kind; 2 for the others
_Q, _KV = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
_QKV = {"attn_q": (_Q, HIDDEN), "attn_k": (_KV, HIDDEN), "attn_v": (_KV, HIDDEN)}
_ENDS = {"attn_output": (HIDDEN, _Q), "ffn_down": (HIDDEN, FFN)}
_GATED = {"ffn_gate": (FFN, HIDDEN), "ffn_up": (FFN, HIDDEN)}
_NORMS = {"attn_norm": (HIDDEN,), "ffn_norm": (HIDDEN,)}
_QK_NORMS = {"attn_q_norm": (HEAD_DIM,), "attn_k_norm": (HEAD_DIM,)}
_AFTER = {"post_attention_norm": (HIDDEN,), "post_ffw_norm": (HIDDEN,)}
_BLOCKS: dict[str, dict[str, tuple[int, ...]]] = {
    "llama": {**_QKV, **_ENDS, **_GATED, **_NORMS},
    "smollm3": {**_QKV, **_ENDS, **_GATED, **_NORMS},
    "qwen2": {**_QKV, **_ENDS, **_GATED, **_NORMS},
    "qwen3": {**_QKV, **_ENDS, **_GATED, **_NORMS, **_QK_NORMS},
    "gemma3": {**_QKV, **_ENDS, **_GATED, **_NORMS, **_QK_NORMS, **_AFTER},
    "phi3": {"attn_qkv": (_Q + 2 * _KV, HIDDEN), "ffn_up": (2 * FFN, HIDDEN), **_ENDS, **_NORMS},
    "gpt2": {"attn_qkv": (3 * _Q, HIDDEN), "ffn_up": (FFN, HIDDEN), **_ENDS, **_NORMS},
}


def write_tiny_model(path: Path, architecture: str, *, weight_type: str = "Q8_0") -> Path:
    """Write the model and return its path. `weight_type`: of every matrix; vectors stay F32."""
    keys = {key.replace("llama.", f"{architecture}."): value for key, value in tiny_metadata().items()}
    num_layers = NUM_LAYERS.get(architecture, 2)
    keys |= {"general.architecture": architecture, f"{architecture}.block_count": num_layers}
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (len(tiny_tokens()[0]), HIDDEN),
        "output_norm.weight": (HIDDEN,),
    }
    for i in range(num_layers):
        shapes |= {f"blk.{i}.{kind}.weight": shape for kind, shape in _BLOCKS[architecture].items()}
    if architecture == "qwen2":
        shapes |= {f"blk.{i}.{x}.bias": _QKV[x][:1] for i in range(num_layers) for x in _QKV}
    if architecture in ("gemma3", "phi3"):
        keys[f"{architecture}.attention.sliding_window"] = 16
    if architecture == "gpt2":
        keys["gpt2.attention.layer_norm_epsilon"] = 1e-5
        del keys["gpt2.attention.head_count_kv"]
        shapes |= {
            name.replace(".weight", ".bias"): (s[0],) for name, s in shapes.items() if "embd" not in name
        }
        shapes["position_embd.weight"] = (CONTEXT, HIDDEN)
    return write_gguf(path, keys, {name: _tensor(name, shape, weight_type) for name, shape in shapes.items()})


def _tensor(name: str, shape: tuple[int, ...], weight_type: str) -> Tensor:
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    values = rng.standard_normal(shape).astype(np.float32)
    if len(shape) == 1:
        return "F32", (values / 8 + (0 if name.endswith("bias") else 1)).astype(np.float32)
    return weight_type, (values * shape[1] ** -0.5).astype(np.float32)
