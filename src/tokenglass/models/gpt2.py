"""The gpt2 architecture (GPT-2 and its kin, Chinese ones too): its whole forward pass, top to bottom.

Positions are learned and added to the embedding, nothing turns; layer norms and biases everywhere; one matrix
up, GELU, one down. Room for activations: `decoder.py`. Source: "Language Models are Unsupervised Multitask
Learners" (Radford et al., 2019), https://github.com/openai/gpt-2 (MIT).
"""

from __future__ import annotations

from tokenglass import kernels
from tokenglass.errors import ModelFileError
from tokenglass.models.batch import Batch
from tokenglass.models.decoder import Decoder, Layer
from tokenglass.models.weights import Space, Weights

POSITIONS = "position_embd.weight"


class GPT2(Decoder):
    """A gpt2 bound to its weights."""

    def __init__(self, weights: Weights, *, space: Space, vocab: int) -> None:
        super().__init__(weights, space=space, vocab=vocab, gated=False)
        config, k = self.config, weights.ops
        if config.num_kv_heads != config.num_heads:
            key = "gpt2.attention.head_count_kv"
            raise ModelFileError(weights.file.path, key, f"{config.num_kv_heads} is not supported yet")
        self.embed = k.Embedding(weights.cpu, self.embedding)
        weights.checked(POSITIONS, (config.context_length, config.hidden))
        positions = weights.file.floats(POSITIONS)
        self.add_positions = k.PositionEmbedding(weights.cpu, positions)
        self.layers = [bind_layer(weights, i, self, len(positions)) for i in range(config.num_layers)]
        self.norm = weights.layer_norm("output_norm", config.hidden, config.norm_eps)
        self.head = weights.linear([self.output], before=self.norm, scratch=self.buffers.last_normed)
        weights.check_all_used()

    def forward(self, batch: Batch) -> kernels.Logits:
        """Logits of the rows that want them, [outputs, vocab]; every row's keys and values go to its page."""
        b, rows = self.buffers, batch.rows(self.ops)
        self.embed(rows, b.x)
        self.add_positions(rows, b.x)  # x += table[position]
        for layer in self.layers:
            layer.qkv(b.x, b.qkv)  # norm(x) times q, k and v, plus their biases
            layer.attention(b.qkv, rows, b.mixed)  # k and v stored, then attended
            layer.attention_out(b.mixed, b.x)  # x += …
            layer.up(b.x, b.up)  # norm(x) times up, plus its bias
            layer.down(b.up, b.x)  # x += … times gelu(up)
        self.ops.take_outputs(b.x, rows, b.last)
        self.head(b.last, b.scores)
        return kernels.Logits(self.cpu, b.scores, self.vocab)


def bind_layer(weights: Weights, i: int, model: GPT2, context: int) -> Layer:
    """The operations of block `i`, shapes checked against the file."""
    k, cpu, b, config, block = weights.ops, weights.cpu, model.buffers, model.config, weights.block(i)
    hidden, ffn, eps, heads = config.hidden, config.ffn, config.norm_eps, config.num_heads
    width = heads * config.head_dim

    qkv, output = block.matrix("attn_qkv", 3 * width, hidden), block.matrix("attn_output", hidden, width)
    up, down = block.matrix("ffn_up", ffn, hidden), block.matrix("ffn_down", hidden, ffn)
    store = k.RopeStore(cpu, None, model.pages, i, heads)  # without a rotation
    return Layer(
        qkv=weights.linear([qkv], before=block.layer_norm("attn_norm", hidden, eps), scratch=b.normed),
        attention=k.Attention(cpu, model.pages, i, heads, context, config.head_dim**-0.5, store),
        attention_out=weights.linear([output], add=True),
        up=weights.linear([up], before=block.layer_norm("ffn_norm", hidden, eps), scratch=b.normed),
        down=weights.linear([down], add=True, before=k.GELU(cpu), scratch=b.activated),
    )
