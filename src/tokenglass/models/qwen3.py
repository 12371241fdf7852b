"""The qwen3 architecture (Qwen3, dense): a llama that norms each head of q and k before it turns them.

The size of a head is the file's own: heads * head_dim need not be hidden. Room for activations: `decoder.py`.
Source: https://arxiv.org/abs/2505.09388.
"""

from __future__ import annotations

from tokenglass import kernels
from tokenglass.models.batch import Batch
from tokenglass.models.decoder import Decoder, Layer
from tokenglass.models.rope import rotations
from tokenglass.models.weights import Space, Weights


class Qwen3(Decoder):
    """A qwen3 bound to its weights."""

    def __init__(self, weights: Weights, *, space: Space, vocab: int) -> None:
        super().__init__(weights, space=space, vocab=vocab)
        config = self.config
        self.embed = weights.ops.Embedding(weights.cpu, self.embedding)
        turns = rotations(config.rope, weights, space.context_length)
        self.layers = [bind_layer(weights, i, self, turns) for i in range(config.num_layers)]
        self.norm = weights.norm("output_norm.weight", config.hidden, config.norm_eps)
        self.head = weights.linear([self.output], before=self.norm, scratch=self.buffers.last_normed)
        weights.check_all_used()

    def forward(self, batch: Batch) -> kernels.Logits:
        """Logits of the rows that want them, [outputs, vocab]; every row's keys and values go to its page."""
        b, rows = self.buffers, batch.rows(self.ops)
        self.embed(rows, b.x)
        for layer in self.layers:
            layer.qkv(b.x, b.qkv)  # norm(x) times q, k and v
            layer.attention(b.qkv, rows, b.mixed)  # q and k normed and turned, k and v stored, then attended
            layer.attention_out(b.mixed, b.x)  # x += …
            layer.up(b.x, b.up)  # norm(x) times gate and up
            layer.down(b.up, b.x)  # x += … times silu(gate) * up
        self.ops.take_outputs(b.x, rows, b.last)
        self.head(b.last, b.scores)
        return kernels.Logits(self.cpu, b.scores, self.vocab)


def bind_layer(weights: Weights, i: int, model: Qwen3, turns: kernels.RopeTable) -> Layer:
    """The operations of block `i`, shapes checked against the file."""
    k, cpu, b, config, block = weights.ops, weights.cpu, model.buffers, model.config, weights.block(i)
    hidden, ffn, eps = config.hidden, config.ffn, config.norm_eps
    heads, head_dim = config.num_heads, config.head_dim
    q_rows, kv_rows = heads * head_dim, config.num_kv_heads * head_dim

    qkv = [
        block.matrix(f"attn_{x}", rows, hidden)
        for x, rows in zip("qkv", (q_rows, kv_rows, kv_rows), strict=True)
    ]
    gate, up = block.matrix("ffn_gate", ffn, hidden), block.matrix("ffn_up", ffn, hidden)
    output, down = block.matrix("attn_output", hidden, q_rows), block.matrix("ffn_down", hidden, ffn)
    q_norm, k_norm = block.vector("attn_q_norm", head_dim), block.vector("attn_k_norm", head_dim)
    rope_store = k.RopeStore(cpu, turns, model.pages, i, heads, q_norm, k_norm, eps)
    attention = k.Attention(
        cpu, model.pages, i, heads, len(turns), head_dim**-0.5, rope_store, config.windows[i]
    )
    return Layer(
        qkv=weights.linear(qkv, before=block.norm("attn_norm", hidden, eps), scratch=b.normed),
        attention=attention,
        attention_out=weights.linear([output], add=True),
        up=weights.linear([gate, up], before=block.norm("ffn_norm", hidden, eps), scratch=b.normed),
        down=weights.linear([down], add=True, before=k.SwiGLU(cpu), scratch=b.activated),
    )
