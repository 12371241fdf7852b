"""The memory a model needs, summed from its header: no weight is read, nothing is allocated.

    weights       panels of 16 rows in the file's own blocks: rows are rounded up to 16; vectors in float32
    cache         K and V: 2 x KV heads x (head size x bytes of a number + scales), each layer and position
    activations   the buffers of one step in float32, those that a product takes in 8 bits too; rotations
    process       Python, the extension, the vocabulary and its encoder: measured, the only part that is

What the engine allocates is the first three to the byte; `tests/fit/test_plan.py` holds them against it.
For other types of weights pass the file through `formats.view.ModelView`. Buffers: `models/decoder.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tokenglass.cache.pages import PAGE_TOKENS, pages_for
from tokenglass.formats import ModelSource, TensorInfo
from tokenglass.models.config import DecoderConfig, read_config

KV_TYPES = {"f32": 4, "f16": 2, "q8": 1}  # bytes of a number; q8 has float16 scales too
LANES, GROUP, SPAN = (
    16,
    32,
    256,
)  # rows of a panel; columns of a scale; positions of a partial sum
MAX_ROWS, MAX_OUTPUTS = 512, 32  # rows of a step, and those of them that want logits
MAX_SPAN_ROWS = 15
PROCESS_BYTES, TOKEN_BYTES = 45_000_000, 170  # measured on Linux; the second for each row of the embedding
NOT_HELD = ("rope_freqs.", "rope_factors_")  # read once, to make the table of rotations


@dataclass(frozen=True)
class CacheLayers:
    """Layers that see equally far, and what they keep of one position.

    The engine keeps every position in every layer. What lies behind a window is never read again:
    `seen_bytes` is what a cache needs that lets it go.
    """

    num_layers: int
    window: int  # positions that a row sees, its own included; 0: all
    token_bytes: int  # K and V of one position, in all of these layers

    def held_bytes(self, num_tokens: int) -> int:
        """Of a sequence of `num_tokens` positions, in whole pages."""
        return pages_for(num_tokens) * PAGE_TOKENS * self.token_bytes

    def seen_bytes(self, num_tokens: int) -> int:
        """The same without what lies behind the window."""
        return self.held_bytes(min(num_tokens, self.window) if self.window else num_tokens)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Bytes of one model, loaded with room for one sequence of `context_length` positions."""

    config: DecoderConfig
    context_length: int
    weights: int
    layers: tuple[CacheLayers, ...]  # the layers that see all first, then the longest window
    activations: int
    process: int

    @property
    def token_bytes(self) -> int:
        """Keys and values of one position in all layers."""
        return sum(layers.token_bytes for layers in self.layers)

    def cache_bytes(self, num_tokens: int) -> int:
        """Keys and values of `num_tokens` positions of one sequence, as the engine keeps them."""
        return sum(layers.held_bytes(num_tokens) for layers in self.layers)

    def total(self, num_tokens: int) -> int:
        """Everything, with a cache that has come to `num_tokens` positions: pages take room when written."""
        return self.weights + self.activations + self.process + self.cache_bytes(num_tokens)


def plan(
    file: ModelSource,
    *,
    context_length: int | None = None,
    kv: str = "f16",
    max_rows: int = MAX_ROWS,
    max_outputs: int = MAX_OUTPUTS,
    num_threads: int = 1,
) -> Plan:
    """What `file` needs. ModelFileError: a key that gives the shape is missing or out of range.

    context_length None: what the engine takes by itself; kv: one of KV_TYPES.
    """
    config = read_config(file)
    window = config.usual_context if context_length is None else context_length
    embedding = file.tensors.get("token_embd.weight")
    return Plan(
        config=config,
        context_length=window,
        weights=sum(held_bytes(file, info) for info in file.tensors.values()),
        layers=cache_layers(config, kv),
        activations=sum(_buffers(file, config, max_rows, max_outputs))
        + _rotations(file, config, window)
        + _partials(config, window, num_threads),
        process=PROCESS_BYTES + TOKEN_BYTES * (embedding.shape[0] if embedding else 0),
    )


def held_bytes(file: ModelSource, info: TensorInfo) -> int:
    """What one tensor of `file` takes once it is loaded; a bias of a product is filled up to whole panels."""
    if info.name.startswith(NOT_HELD):
        return 0
    if len(info.shape) != 2 or info.name == "position_embd.weight":
        count = 1
        for length in info.shape:
            count *= length
        weight = file.tensors.get(f"{info.name.removesuffix('.bias')}.weight")
        is_bias = weight is not None and weight is not info and len(weight.shape) == 2
        return 4 * (_whole(count, LANES) if is_bias else count)
    rows, cols = info.shape
    return info.type.num_bytes((_whole(rows, LANES), cols))


def cache_layers(config: DecoderConfig, kv: str) -> tuple[CacheLayers, ...]:
    """The layers by how far they see; `kv`: one of KV_TYPES."""
    scales = -(-config.head_dim // GROUP) if kv == "q8" else 0
    layer_bytes = 2 * config.num_kv_heads * (config.head_dim * KV_TYPES[kv] + 2 * scales)
    kinds = Counter(config.windows)
    order = sorted(kinds, key=lambda window: (window != 0, -window))
    return tuple(CacheLayers(kinds[window], window, kinds[window] * layer_bytes) for window in order)


def _buffers(file: ModelSource, config: DecoderConfig, max_rows: int, max_outputs: int) -> Iterator[int]:
    """Bytes of each buffer of `Buffers` in models/decoder.py, and of Gemma's branch."""
    heads, kv_heads = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
    is_gated = config.architecture != "gpt2"
    head = file.tensors.get("output.weight") or file.tensors.get("token_embd.weight")
    yield _rows(max_rows, config.hidden)
    yield _rows(max_rows, config.hidden, quantised=True)
    yield _rows(max_rows, heads + 2 * kv_heads)
    yield _rows(max_rows, heads, quantised=True)
    yield _rows(max_rows, 2 * config.ffn if is_gated else config.ffn)
    yield _rows(max_rows, config.ffn, quantised=True)
    yield _rows(max_outputs, config.hidden)
    yield _rows(max_outputs, config.hidden, quantised=True)
    yield _rows(max_outputs, head.shape[0] if head else 0)
    if "blk.0.post_ffw_norm.weight" in file.tensors:
        yield _rows(max_rows, config.hidden)


def _rows(capacity: int, width: int, *, quantised: bool = False) -> int:
    """Float32, a vector more at the end; int8, and four numbers of 4 bytes for each group of columns."""
    num_bytes = 4 * (capacity * width + LANES)
    return num_bytes + (capacity * width + 16 * capacity * (width // GROUP) if quantised else 0)


def _rotations(file: ModelSource, config: DecoderConfig, context: int) -> int:
    """Cosines and sines of each position, float32 [context, 2, dims / 2]; Gemma 3 has two such tables."""
    if "position_embd.weight" in file.tensors:
        return 0
    return (2 if config.architecture == "gemma3" else 1) * context * config.rope.dims * 4


def _partials(config: DecoderConfig, context: int, num_threads: int) -> int:
    """Room for attention over spans of a long text by several threads (csrc/bind_attention.cpp)."""
    rows = min(4 * num_threads // config.num_kv_heads + 1, MAX_SPAN_ROWS)
    return 4 * rows * config.num_heads * -(-context // SPAN) * (config.head_dim + 2)


def _whole(count: int, unit: int) -> int:
    return -(-count // unit) * unit
