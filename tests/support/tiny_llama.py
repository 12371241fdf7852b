"""Writes a tiny but complete `llama` model: 2 layers, 300 tokens, random weights from a fixed seed.

Names, metadata keys and layout are those of a real file (SmolLM2 by llama.cpp's converter), so every part
from reader to the engine can run on it. It cannot write prose; its greedy output is stable nonsense.
Values depend on the seed and the tensor's name only: two block types of a tensor are roundings of one matrix.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.support.tiny_gguf import TYPES, Tensor, random_blocks, write_gguf

CONTROL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")  # ids 0, 1, 2, as in SmolLM2
NORMAL, CONTROL = 1, 3  # values of tokenizer.ggml.token_type
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
# The pieces the merges build, each by joining its longest known beginning with the rest, byte by byte.
MERGED_TEXTS = (
    " t", " a", "he", "in", "re", "on", " the", "er", " s", "at", "ou", " c", "an", "en", " w", "is", "it",
    "or", "es", "ed", " o", " f", " p", " b", "al", "ar", "ing", "ll", " of", " m", " in", "st", "as", "le",
    "12", "你", "好",
)  # fmt: skip


@dataclass(frozen=True)
class TinyLlama:
    """The model's shape. hidden must be num_heads * head_dim and every row a multiple of the block length."""

    num_layers: int = 2
    hidden: int = 64
    num_heads: int = 4
    num_kv_heads: int = 2
    head_dim: int = 16
    ffn: int = 96
    context_length: int = 512
    rope_freq_base: float = 10000.0
    tied: bool = True
    seed: int = 0


def write_tiny_llama(
    path: Path,
    *,
    weight_type: str = "F32",
    types: Mapping[str, str] | None = None,
    shape: TinyLlama = TinyLlama(),
    metadata: Mapping[str, Any] | None = None,
) -> Path:
    """Write the model and return its path.

    `weight_type` is the block type of every matrix (norms stay F32); `types` overrides it by tensor name or
    pattern (`{"blk.*.attn_v.weight": "Q4_1"}`). `metadata` adds or replaces keys; None removes one.
    Types without a quantiser here (Q4_K, Q6_K, ...) get random valid blocks; their rows are multiples of 256,
    so give a wider `shape`.
    """
    keys = {**tiny_metadata(shape), **(metadata or {})}
    tensors: dict[str, Tensor] = {}
    for name, values in tiny_weights(shape).items():
        type_name = "F32" if values.ndim == 1 else weight_type
        for pattern, override in (types or {}).items():
            type_name = override if fnmatchcase(name, pattern) else type_name
        tensors[name] = _tensor(name, type_name, values)
    return write_gguf(path, {key: value for key, value in keys.items() if value is not None}, tensors)


def tiny_weights(shape: TinyLlama = TinyLlama()) -> dict[str, NDArray[np.float32]]:
    """Every tensor in float32, numpy order [rows, cols], before any rounding to a block type.

    attn_q and attn_k are in the file's layout (interleaved RoPE pairs), as llama.cpp's converter writes them.
    """
    q_rows, kv_rows = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
    weights = {
        "token_embd.weight": _matrix("token_embd.weight", shape, len(tiny_tokens()[0]), shape.hidden) * 3
    }
    for i in range(shape.num_layers):
        for name, rows, cols in (
            ("attn_norm", 0, shape.hidden),
            ("ffn_down", shape.hidden, shape.ffn),
            ("ffn_gate", shape.ffn, shape.hidden),
            ("ffn_up", shape.ffn, shape.hidden),
            ("ffn_norm", 0, shape.hidden),
            ("attn_k", kv_rows, shape.hidden),
            ("attn_output", shape.hidden, q_rows),
            ("attn_q", q_rows, shape.hidden),
            ("attn_v", kv_rows, shape.hidden),
        ):
            full = f"blk.{i}.{name}.weight"
            weights[full] = _matrix(full, shape, rows, cols) if rows else _norm(full, shape, cols)
    weights["output_norm.weight"] = _norm("output_norm.weight", shape, shape.hidden)
    if not shape.tied:
        weights["output.weight"] = _matrix("output.weight", shape, len(tiny_tokens()[0]), shape.hidden) * 3
    return weights


def tiny_metadata(shape: TinyLlama = TinyLlama()) -> dict[str, Any]:
    """The metadata of the file; ints become uint32 and floats float32."""
    tokens, merges = tiny_tokens()
    kinds = [CONTROL if token in CONTROL_TOKENS else NORMAL for token in tokens]
    return {
        "general.architecture": "llama",
        "general.type": "model",
        "general.name": "Tiny Llama",
        "general.file_type": 0,
        "general.quantization_version": 2,
        "llama.block_count": shape.num_layers,
        "llama.context_length": shape.context_length,
        "llama.embedding_length": shape.hidden,
        "llama.feed_forward_length": shape.ffn,
        "llama.attention.head_count": shape.num_heads,
        "llama.attention.head_count_kv": shape.num_kv_heads,
        "llama.rope.freq_base": shape.rope_freq_base,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.vocab_size": len(tokens),
        "llama.rope.dimension_count": shape.head_dim,
        "tokenizer.ggml.add_space_prefix": False,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.padding_token_id": 2,
        "tokenizer.chat_template": CHAT_TEMPLATE,
    }


def tiny_tokens() -> tuple[list[str], list[str]]:
    """Token texts by id (3 control tokens, 256 byte tokens, one per merge) and the merges in rank order."""
    alphabet = byte_alphabet()
    tokens = [*CONTROL_TOKENS, *alphabet]
    merges: list[str] = []
    for text in MERGED_TEXTS:
        letters = [alphabet[byte] for byte in text.encode()]
        while len(letters) > 1:
            joined = letters[0] + letters[1]
            if joined not in tokens:
                merges.append(f"{letters[0]} {letters[1]}")
                tokens.append(joined)
            letters[:2] = [joined]
    return tokens, merges


def byte_alphabet() -> list[str]:
    """GPT-2's printable stand-in for each of the 256 bytes: itself where it prints, else U+0100 onwards."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) if byte in printable else chr(256 + others.index(byte)) for byte in range(256)]


def _tensor(name: str, type_name: str, values: NDArray[np.float32]) -> Tensor:
    if type_name in ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL"):
        block_len = TYPES[type_name][1]
        if values.shape[-1] % block_len:
            raise ValueError(f"{name}: rows of {values.shape[-1]} are not a multiple of {block_len}")
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        return type_name, values.shape, random_blocks(type_name, values.size // block_len, rng).tobytes()
    return type_name, values


def _matrix(name: str, shape: TinyLlama, rows: int, cols: int) -> NDArray[np.float32]:
    values = _rng(name, shape).standard_normal((rows, cols), np.float32)
    return values * np.float32(cols**-0.5)


def _norm(name: str, shape: TinyLlama, cols: int) -> NDArray[np.float32]:
    return _rng(name, shape).uniform(0.5, 1.5, cols).astype(np.float32)


def _rng(name: str, shape: TinyLlama) -> np.random.Generator:
    return np.random.default_rng([shape.seed, zlib.crc32(name.encode())])
