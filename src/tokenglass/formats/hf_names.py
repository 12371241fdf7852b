"""Names and layouts of Hugging Face checkpoints, and the GGUF ones that our models ask for. A row a tensor.

A name stands without its last word: both `.weight` and `.bias` follow it. What differs besides names:

    llama     rotation pairs of q and k: rows 2i and 2i+1 in GGUF, half a head apart in Hugging Face's files
    gemma3    GGUF stores the factor of a norm; Hugging Face stores it less one
    gpt2      Hugging Face stores the matrices of its Conv1D as [in, out]

Fused matrices (qkv of gpt2 and phi3, gate and up of phi3) stay fused: GGUF has them so too, row after row.
Source: the names of https://github.com/ggml-org/llama.cpp (gguf-py/gguf/tensor_mapping.py, MIT); a test
compares every row with that package.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property


@dataclass(frozen=True)
class Architecture:
    """How checkpoints of one kind differ from their GGUF form. `names`: GGUF's -> Hugging Face's."""

    name: str
    names: Mapping[str, str]
    interleaved: frozenset[str] = frozenset()  # GGUF names whose rows are rotation pairs
    transposed: frozenset[str] = frozenset()  # [in, out] in the checkpoint
    norm_offset: float = 0.0  # what GGUF adds to the weights of norms
    unused: re.Pattern[str] = re.compile(r".*rotary_emb\.inv_freq")  # computed, and yet in some checkpoints
    prefix: str = "model."  # left out where the base model was saved alone

    def gguf_name(self, name: str) -> str | None:
        """`model.layers.3.self_attn.q_proj.weight` -> `blk.3.attn_q.weight`; None: no tensor of this kind."""
        stem, _, last = name.rpartition(".")
        if last not in ("weight", "bias"):
            return None
        number = re.search(r"\.(0|[1-9][0-9]{0,3})\.", f".{stem}.")
        i = number[1] if number else ""
        pattern = stem if number is None else f".{stem}.".replace(f".{i}.", ".{i}.", 1)[1:-1]
        for spelled in (pattern, self.prefix + pattern):
            if spelled in self._gguf_names:
                return f"{self._gguf_names[spelled].replace('{i}', i)}.{last}"
        return None

    def hf_name(self, name: str) -> str | None:
        """`blk.3.attn_q.weight` -> `model.layers.3.self_attn.q_proj.weight`; None: not of this kind."""
        stem, _, last = name.rpartition(".")
        found = re.fullmatch(r"blk\.(0|[1-9][0-9]*)\.(.*)", stem)
        pattern = f"blk.{{i}}.{found[2]}" if found else stem
        if pattern not in self.names:
            return None
        return f"{self.names[pattern].replace('{i}', found[1] if found else '')}.{last}"

    @cached_property
    def _gguf_names(self) -> dict[str, str]:
        return {theirs: ours for ours, theirs in self.names.items()}


def kind_of(gguf_name: str) -> str:
    """`blk.3.attn_q.weight` -> `attn_q`: what a tensor is, whichever the layer."""
    return gguf_name.rpartition(".")[0].rpartition(".")[2]


_LAYER = "model.layers.{i}."
_ENDS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_QKV = {f"blk.{{i}}.attn_{x}": f"{_LAYER}self_attn.{x}_proj" for x in "qkv"}
_QK_NORMS = {f"blk.{{i}}.attn_{x}_norm": f"{_LAYER}self_attn.{x}_norm" for x in "qk"}
_OUTPUT = {"blk.{i}.attn_output": f"{_LAYER}self_attn.o_proj"}
_FEED_FORWARD = {f"blk.{{i}}.ffn_{x}": f"{_LAYER}mlp.{x}_proj" for x in ("gate", "up", "down")}
_TWO_NORMS = {
    "blk.{i}.attn_norm": f"{_LAYER}input_layernorm",
    "blk.{i}.ffn_norm": f"{_LAYER}post_attention_layernorm",
}
_FOUR_NORMS = {
    "blk.{i}.attn_norm": f"{_LAYER}input_layernorm",
    "blk.{i}.post_attention_norm": f"{_LAYER}post_attention_layernorm",
    "blk.{i}.ffn_norm": f"{_LAYER}pre_feedforward_layernorm",
    "blk.{i}.post_ffw_norm": f"{_LAYER}post_feedforward_layernorm",
}
_DECODER = {**_ENDS, **_QKV, **_OUTPUT, **_FEED_FORWARD, **_TWO_NORMS}

LLAMA = Architecture("llama", _DECODER, interleaved=frozenset({"attn_q", "attn_k"}))
SMOLLM3 = replace(LLAMA, name="smollm3")
QWEN2 = Architecture("qwen2", _DECODER)
QWEN3 = Architecture("qwen3", {**_DECODER, **_QK_NORMS})
GEMMA3 = Architecture(
    "gemma3", {**_ENDS, **_QKV, **_OUTPUT, **_FEED_FORWARD, **_QK_NORMS, **_FOUR_NORMS}, norm_offset=1.0
)
PHI3 = Architecture(
    "phi3",
    {
        **_ENDS,
        **_OUTPUT,
        **_TWO_NORMS,
        "blk.{i}.attn_qkv": f"{_LAYER}self_attn.qkv_proj",
        "blk.{i}.ffn_up": f"{_LAYER}mlp.gate_up_proj",
        "blk.{i}.ffn_down": f"{_LAYER}mlp.down_proj",
    },
)
GPT2 = Architecture(
    "gpt2",
    {
        "token_embd": "transformer.wte",
        "position_embd": "transformer.wpe",
        "output_norm": "transformer.ln_f",
        "output": "lm_head",
        "blk.{i}.attn_norm": "transformer.h.{i}.ln_1",
        "blk.{i}.attn_qkv": "transformer.h.{i}.attn.c_attn",
        "blk.{i}.attn_output": "transformer.h.{i}.attn.c_proj",
        "blk.{i}.ffn_norm": "transformer.h.{i}.ln_2",
        "blk.{i}.ffn_up": "transformer.h.{i}.mlp.c_fc",
        "blk.{i}.ffn_down": "transformer.h.{i}.mlp.c_proj",
    },
    transposed=frozenset({"attn_qkv", "attn_output", "ffn_up", "ffn_down"}),
    unused=re.compile(r"(transformer\.)?h\.[0-9]+\.attn\.(masked_)?bias"),  # the causal mask
    prefix="transformer.",
)

# by `model_type` of config.json; the name of each is what a GGUF calls it
ARCHITECTURES = {
    "llama": LLAMA, "mistral": LLAMA, "smollm3": SMOLLM3, "qwen2": QWEN2, "qwen3": QWEN3,
    "gemma3_text": GEMMA3, "phi3": PHI3, "gpt2": GPT2,
}  # fmt: skip
