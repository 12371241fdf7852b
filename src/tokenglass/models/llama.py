"""The llama architecture (Llama, SmolLM2, Mistral, TinyLlama …): its whole forward pass, top to bottom.

Left out: where sequences come from (`engine/scheduler.py`) and how a token is chosen (`sampling/`). The
operations are documented in `kernels/_native.pyi`, readable as numpy in `kernels/reference.py`. Source:
https://arxiv.org/abs/2302.13971.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokenglass import kernels
from tokenglass.errors import ModelFileError
from tokenglass.models.batch import Batch
from tokenglass.models.config import DecoderConfig, read_config
from tokenglass.models.weights import Space, Weights, unpermuted_rows


@dataclass(frozen=True, slots=True)
class Layer:
    """One block's operations, bound to its weights."""

    qkv: kernels.Linear  # attention norm, then q, k and v side by side
    attention: kernels.Attention  # rotates q and k, stores k and v in their pages, attends
    attention_out: kernels.Linear  # x += …
    gate_up: kernels.Linear  # feed-forward norm, then gate and up side by side
    down: kernels.Linear  # x += down(silu(gate) * up)


@dataclass(frozen=True, slots=True)
class Buffers:
    """Activations of a step, written in place: float32 [rows, …], the last three [outputs, …].

    What a product first makes of its input (`normed`, `activated`, `last_normed`) also has an int8 form.
    """

    x: kernels.Rows  # hidden: the residual stream
    normed: kernels.Rows  # hidden
    qkv: kernels.Rows  # (heads + 2 kv_heads) * head_dim
    mixed: kernels.Rows  # heads * head_dim: what attention gathered
    gate_up: kernels.Rows  # 2 ffn
    activated: kernels.Rows  # ffn
    last: kernels.Rows  # hidden: x of the rows that want logits
    last_normed: kernels.Rows  # hidden
    scores: kernels.Rows  # vocabulary and padding


class Llama:
    """The operations and buffers of one model; `space` says how many rows and pages they are made for."""

    def __init__(self, weights: Weights, *, space: Space, vocab: int) -> None:
        config = read_config(weights.file)
        check_sizes(weights, config)
        k = weights.ops
        self.config = config
        self.ops = k
        self.cpu = weights.cpu
        embedding = head = weights.table("token_embd.weight", config.hidden, vocab)
        if weights.has("output.weight"):
            head = weights.table("output.weight", config.hidden, vocab)
        rotations = k.rope_table(inverse_frequencies(config, weights), space.context_length)
        self.pages = k.KVPages(
            config.num_layers, space.num_pages, config.num_kv_heads, config.head_dim, space.kv
        )
        self.buffers = b = make_buffers(weights, config, space, head.rows)
        self.embed = k.Embedding(weights.cpu, embedding)
        self.layers = [bind_layer(weights, config, i, self, rotations) for i in range(config.num_layers)]
        norm = weights.norm("output_norm.weight", config.hidden, config.norm_eps)
        self.head = weights.linear([head], before=norm, scratch=b.last_normed)
        self.vocab = vocab
        self.notes = weights.notes

    def forward(self, batch: Batch) -> kernels.Logits:
        """Logits of the rows that want them, [outputs, vocab]; every row's keys and values go to its page."""
        b, rows = self.buffers, batch.rows(self.ops)
        self.embed(rows, b.x)
        for layer in self.layers:
            layer.qkv(b.x, b.qkv)  # norm(x) times q, k and v
            layer.attention(b.qkv, rows, b.mixed)  # q and k turned by position, k and v stored, then attended
            layer.attention_out(b.mixed, b.x)  # x += …
            layer.gate_up(b.x, b.gate_up)  # norm(x) times gate and up
            layer.down(b.gate_up, b.x)  # x += … times silu(gate) * up
        self.ops.take_outputs(b.x, rows, b.last)
        self.head(b.last, b.scores)
        return kernels.Logits(self.cpu, b.scores, self.vocab)

    @property
    def kv_bytes_per_token(self) -> int:
        """Keys and values of one position in all layers."""
        num_bytes: int = self.pages.page_bytes // self.ops.PAGE
        return num_bytes

    def read_weights(self) -> None:
        """Reads every weight of a step once and computes nothing: the time that memory alone takes."""
        self.ops.read_all(self.products)

    @property
    def products(self) -> list[kernels.Linear]:
        """Every product of a step, in order: together the weights one decoded token must read."""
        layers = [(layer.qkv, layer.attention_out, layer.gate_up, layer.down) for layer in self.layers]
        return [product for layer in layers for product in layer] + [self.head]


def check_sizes(weights: Weights, config: DecoderConfig) -> None:
    """Before anything is sized by the counts, the first block vouches for them: metadata costs a hostile file
    nothing, tensors cost it bytes.
    """
    heads, kv_heads = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
    for name, rows in (("attn_q", heads), ("attn_k", kv_heads), ("ffn_gate", config.ffn)):
        weights.checked(f"blk.0.{name}.weight", (rows, config.hidden))


def bind_layer(
    weights: Weights, config: DecoderConfig, i: int, model: Llama, rotations: NDArray[np.float32]
) -> Layer:
    """The operations of block `i`, shapes checked against the file."""
    k, cpu, b = weights.ops, weights.cpu, model.buffers
    hidden, ffn, eps = config.hidden, config.ffn, config.norm_eps
    heads, kv_heads, head_dim = config.num_heads, config.num_kv_heads, config.head_dim

    def matrix(name: str, rows: int, cols: int, order: NDArray[np.int32] | None = None) -> kernels.Matrix:
        return weights.matrix(f"blk.{i}.{name}.weight", rows, cols, order=order)

    query = matrix("attn_q", heads * head_dim, hidden, unpermuted_rows(heads, head_dim))
    key = matrix("attn_k", kv_heads * head_dim, hidden, unpermuted_rows(kv_heads, head_dim))
    value = matrix("attn_v", kv_heads * head_dim, hidden)
    gate, up = matrix("ffn_gate", ffn, hidden), matrix("ffn_up", ffn, hidden)
    attention_norm = weights.norm(f"blk.{i}.attn_norm.weight", hidden, eps)
    ffn_norm = weights.norm(f"blk.{i}.ffn_norm.weight", hidden, eps)
    rope_store = k.RopeStore(cpu, rotations, model.pages, i, heads)
    scale = head_dim**-0.5
    return Layer(
        qkv=weights.linear([query, key, value], before=attention_norm, scratch=b.normed),
        attention=k.Attention(cpu, model.pages, i, heads, len(rotations), scale, rope_store),
        attention_out=weights.linear([matrix("attn_output", hidden, heads * head_dim)], add=True),
        gate_up=weights.linear([gate, up], before=ffn_norm, scratch=b.normed),
        down=weights.linear(
            [matrix("ffn_down", hidden, ffn)], add=True, before=k.SwiGLU(cpu), scratch=b.activated
        ),
    )


def make_buffers(weights: Weights, config: DecoderConfig, space: Space, num_scores: int) -> Buffers:
    """Room for the activations of the largest step; inputs of products also hold an int8 form."""
    rows, outputs, new = space.max_rows, space.max_outputs, weights.ops.Rows
    heads, kv_heads = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
    return Buffers(
        x=new(rows, config.hidden),
        normed=new(rows, config.hidden, quantised=True),
        qkv=new(rows, heads + 2 * kv_heads),
        mixed=new(rows, heads, quantised=True),
        gate_up=new(rows, 2 * config.ffn),
        activated=new(rows, config.ffn, quantised=True),
        last=new(outputs, config.hidden),
        last_normed=new(outputs, config.hidden, quantised=True),
        scores=new(outputs, num_scores),
    )


def inverse_frequencies(config: DecoderConfig, weights: Weights) -> NDArray[np.float32]:
    """base^(-2i / head_dim), float32 [head_dim / 2], divided by the factors of a Llama 3.x file."""
    half = config.head_dim // 2
    frequencies = np.array([config.rope_freq_base ** (-i / half) for i in range(half)], np.float32)
    if weights.has("rope_freqs.weight"):
        factors = weights.vector("rope_freqs.weight", half)
        if not (np.isfinite(factors) & (factors > 0)).all():
            raise ModelFileError(weights.file.path, "tensor rope_freqs.weight", "must hold positive numbers")
        frequencies /= factors
    return frequencies
