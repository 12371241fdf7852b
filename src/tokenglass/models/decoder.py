"""What all architectures share: sizes that are checked, room for activations, pages. No forward pass is here.

Each architecture's own file binds its operations and shows its forward pass whole; start with `llama.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokenglass import kernels
from tokenglass.models.batch import Batch
from tokenglass.models.config import read_config
from tokenglass.models.weights import Space, Weights


@dataclass(frozen=True, slots=True)
class Layer:
    """One block's operations, bound to its weights."""

    qkv: kernels.Linear  # attention norm, then q, k and v side by side
    attention: kernels.Attention  # makes q and k ready, stores k and v in their pages, attends
    attention_out: kernels.Linear  # back to hidden
    up: kernels.Linear  # feed-forward norm, then up, with gate at its side where there is one
    down: kernels.Linear  # activation, then back to hidden


@dataclass(frozen=True, slots=True)
class Buffers:
    """Activations of a step, written in place: float32 [rows, …], the last three [outputs, …].

    What a product takes (`normed`, `mixed`, `activated`, `last_normed`) also has an int8 form.
    """

    x: kernels.Rows  # hidden: the residual stream
    normed: kernels.Rows  # hidden
    qkv: kernels.Rows  # (heads + 2 kv_heads) * head_dim
    mixed: kernels.Rows  # heads * head_dim: what attention gathered
    up: kernels.Rows  # 2 ffn: gate and up; ffn where there is no gate
    activated: kernels.Rows  # ffn
    last: kernels.Rows  # hidden: x of the rows that want logits
    last_normed: kernels.Rows  # hidden
    scores: kernels.Rows  # vocabulary and padding


class Decoder:
    """A model bound to its weights; `space` says how many rows and pages it is made for.

    An architecture adds `embed`, `layers`, `norm`, `head` and `forward`. `gated`: gate and up are multiplied.
    """

    embed: kernels.Embedding
    layers: Sequence[Layer]
    norm: kernels.RowOperation  # in front of the head, which calls it
    head: kernels.Linear

    def __init__(self, weights: Weights, *, space: Space, vocab: int, gated: bool = True) -> None:
        self.config = config = read_config(weights.file)
        self.ops, self.cpu, self.notes, self.vocab = weights.ops, weights.cpu, weights.notes, vocab
        hidden, ffn, heads = config.hidden, config.ffn, config.num_heads * config.head_dim
        # Before anything is sized by the counts, the first block vouches for them: metadata costs a hostile
        # file nothing, tensors cost it bytes.
        weights.checked("blk.0.attn_output.weight", (hidden, heads))
        weights.checked("blk.0.ffn_down.weight", (hidden, ffn))
        self.embedding = self.output = weights.table("token_embd.weight", hidden, vocab)
        if weights.has("output.weight"):  # the file decides, no flag
            self.output = weights.table("output.weight", hidden, vocab)
        self.pages = weights.ops.KVPages(
            config.num_layers, space.num_pages, config.num_kv_heads, config.head_dim, space.kv
        )
        new, rows, outputs = weights.ops.Rows, space.max_rows, space.max_outputs
        self.buffers = Buffers(
            x=new(rows, hidden),
            normed=new(rows, hidden, quantised=True),
            qkv=new(rows, heads + 2 * config.num_kv_heads * config.head_dim),
            mixed=new(rows, heads, quantised=True),
            up=new(rows, 2 * ffn if gated else ffn),
            activated=new(rows, ffn, quantised=True),
            last=new(outputs, hidden),
            last_normed=new(outputs, hidden, quantised=True),
            scores=new(outputs, self.output.rows),
        )

    def forward(self, batch: Batch) -> kernels.Logits:
        """Logits of the rows that want them, [outputs, vocab]; every row's keys and values go to its page."""
        raise NotImplementedError

    def last_hidden(self) -> NDArray[np.float32]:
        """The hidden states after the final norm, for the rows of logits of the newest `forward`: float32
        [outputs, hidden], a copy.
        """
        normed = self.ops.Rows(max(1, self.buffers.last.count), self.config.hidden)
        self.norm(self.buffers.last, normed)
        rows: NDArray[np.float32] = normed.numpy().copy()
        return rows

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
        layers = [(layer.qkv, layer.attention_out, layer.up, layer.down) for layer in self.layers]
        return [product for layer in layers for product in layer] + [self.head]
