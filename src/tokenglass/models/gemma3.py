"""The gemma3 architecture (the text model of Gemma 3): its whole forward pass, top to bottom.

Four norms a block, two in front of the products and two behind them; norms of q and k; gelu(gate) * up; five
layers that see a sliding window, then one that sees all, each kind with its own speed of rotation. Room for
activations: `decoder.py`. Source: https://arxiv.org/abs/2503.19786, and Transformers (Apache-2.0).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tokenglass import kernels
from tokenglass.errors import ModelFileError
from tokenglass.formats import ModelSource
from tokenglass.models.batch import Batch
from tokenglass.models.config import DecoderConfig
from tokenglass.models.decoder import Decoder, Layer
from tokenglass.models.rope import Rope, rotations
from tokenglass.models.weights import Space, Weights

LOCAL_BASE = 10000.0  # of the sliding layers' rotations, where the file does not say
LAYERS_OF_27B = 62  # this one divides its scores by another number, which no key of a GGUF states


@dataclass(frozen=True, slots=True)
class Gemma3Layer(Layer):
    """What stands behind the two products that lead back to hidden."""

    attention_norm: kernels.AddNorm  # x += norm(attention_out(…))
    down_norm: kernels.AddNorm  # x += norm(down(…))


class Gemma3(Decoder):
    """A gemma3 bound to its weights."""

    layers: list[Gemma3Layer]

    def __init__(self, weights: Weights, *, space: Space, vocab: int) -> None:
        super().__init__(weights, space=space, vocab=vocab)
        config, context = self.config, space.context_length
        self.embed = weights.ops.Embedding(weights.cpu, self.embedding, config.hidden**0.5)
        self.branch = weights.ops.Rows(space.max_rows, config.hidden)  # what will join x
        everywhere = rotations(config.rope, weights, context)
        nearby = rotations(local_rope(config, weights.file), weights, context)
        scale = score_scale(config, weights.file)
        self.layers = [
            bind_layer(weights, i, self, nearby if window else everywhere, window, scale)
            for i, window in enumerate(config.windows)
        ]
        self.norm = weights.norm("output_norm.weight", config.hidden, config.norm_eps)
        self.head = weights.linear([self.output], before=self.norm, scratch=self.buffers.last_normed)
        weights.check_all_used()

    def forward(self, batch: Batch) -> kernels.Logits:
        """Logits of the rows that want them, [outputs, vocab]; every row's keys and values go to its page."""
        b, rows = self.buffers, batch.rows(self.ops)
        self.embed(rows, b.x)  # times sqrt(hidden)
        for layer in self.layers:
            layer.qkv(b.x, b.qkv)  # norm(x) times q, k and v
            layer.attention(b.qkv, rows, b.mixed)  # q and k normed and turned, k and v stored, then attended
            layer.attention_out(b.mixed, self.branch)
            layer.attention_norm(self.branch, b.x)  # x += norm(…)
            layer.up(b.x, b.up)  # norm(x) times gate and up
            layer.down(b.up, self.branch)  # gelu(gate) * up, and back to hidden
            layer.down_norm(self.branch, b.x)  # x += norm(…)
        self.ops.take_outputs(b.x, rows, b.last)
        self.head(b.last, b.scores)
        return kernels.Logits(self.cpu, b.scores, self.vocab)


def bind_layer(
    weights: Weights, i: int, model: Gemma3, turns: kernels.RopeTable, window: int, scale: float
) -> Gemma3Layer:
    """The operations of block `i`, shapes checked against the file. `window`: 0 sees all positions."""
    k, cpu, b, config, block = weights.ops, weights.cpu, model.buffers, model.config, weights.block(i)
    hidden, ffn, eps = config.hidden, config.ffn, config.norm_eps
    heads, head_dim = config.num_heads, config.head_dim
    q_rows, kv_rows = heads * head_dim, config.num_kv_heads * head_dim

    query, key = block.matrix("attn_q", q_rows, hidden), block.matrix("attn_k", kv_rows, hidden)
    value = block.matrix("attn_v", kv_rows, hidden)
    gate, up = block.matrix("ffn_gate", ffn, hidden), block.matrix("ffn_up", ffn, hidden)
    output, down = block.matrix("attn_output", hidden, q_rows), block.matrix("ffn_down", hidden, ffn)
    q_norm, k_norm = block.vector("attn_q_norm", head_dim), block.vector("attn_k_norm", head_dim)
    attention_norm, ffn_norm = block.norm("attn_norm", hidden, eps), block.norm("ffn_norm", hidden, eps)
    rope_store = k.RopeStore(cpu, turns, model.pages, i, heads, q_norm, k_norm, eps)
    return Gemma3Layer(
        qkv=weights.linear([query, key, value], before=attention_norm, scratch=b.normed),
        attention=k.Attention(cpu, model.pages, i, heads, len(turns), scale, rope_store, window),
        attention_out=weights.linear([output]),
        attention_norm=k.AddNorm(cpu, block.vector("post_attention_norm", hidden), eps),
        up=weights.linear([gate, up], before=ffn_norm, scratch=b.normed),
        down=weights.linear([down], before=k.GeGLU(cpu), scratch=b.activated),
        down_norm=k.AddNorm(cpu, block.vector("post_ffw_norm", hidden), eps),
    )


def local_rope(config: DecoderConfig, file: ModelSource) -> Rope:
    """The sliding layers' rotation: a base of its own, and never scaled. ModelFileError."""
    key = "gemma3.rope.freq_base_swa"
    base = file.get(key, float, default=LOCAL_BASE)
    if not 1.0 < base < 1e12:
        raise ModelFileError(file.path, key, f"is {base}")
    return replace(config.rope, base=base, scaling="none", attention_factor=1.0)


def score_scale(config: DecoderConfig, file: ModelSource) -> float:
    """By what q k is multiplied: 1 / sqrt(query_pre_attn_scalar), most often the size of a head."""
    wide = config.hidden / config.num_heads if config.num_layers == LAYERS_OF_27B else config.head_dim
    scale = file.get("gemma3.attention.scale", float, default=wide**-0.5)
    if not 0.0 < scale < 1e6:
        raise ModelFileError(file.path, "gemma3.attention.scale", f"is {scale}")
    return scale
