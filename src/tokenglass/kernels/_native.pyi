"""Types and shapes of the C++ operations (`csrc/bind*.cpp`). Readable twins: `reference.py`. Numeric
contract: docs/en/numerics.md.

Every operation checks widths and counts and raises ValueError before it touches memory. `Rows` buffers are
written in place.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

PAGE: int  # positions in a KV page
GROUP: int  # columns that share one scale
SPAN: int  # absolute positions in one softmax partial

def runnable_isas() -> list[str]:
    """Instruction sets in this build that this processor runs, best first; the last is always `plain`."""

def has_panels(format: str) -> bool:
    """Whether blocks of this GGUF type are packed as they are."""

class Cpu:
    """Threads and instruction set, shared by the operations bound with it."""
    def __init__(self, num_threads: int, isa: str) -> None: ...
    @property
    def num_threads(self) -> int: ...
    @property
    def isa(self) -> str: ...
    def reserve(self, num_bytes: int) -> None:
        """Room for so many bytes of weights, cleared in the background while other things are read."""
    is_timed: bool  # add up the time spent in operations
    op_seconds: float
    product_seconds: float  # of op_seconds: the products, without norms and quantising
    def argmax(self, logits: Rows, row: int, vocab: int) -> int:
        """The lowest id among the largest of the first `vocab` logits of a row; -1 if that is not finite."""
    def top(self, logits: Rows, row: int, vocab: int, num: int) -> NDArray[np.int32]:
        """Ids of the `num` largest, largest first, equals by id; NaN is left out: int32 [<= num]."""
    def survey(
        self, logits: Rows, row: int, vocab: int, id: int, num: int
    ) -> tuple[float, float, float, int, list[int], list[float]]:
        """(largest, sum of e^(logit - largest), sum of that times (logit - largest), how many are better than
        `id`, ids of the `num` best and of `id`, their logits).
        """
    def softmax_weights(
        self, logits: Rows, row: int, vocab: int, temperature: float
    ) -> tuple[NDArray[np.float32], float]:
        """e^((logit - largest) / temperature), float32 [vocab], and their sum."""

class Matrix:
    """Weights [rows, cols] packed into panels of 16 rows (drawn in csrc/panels).

    `raw` is the tensor as it lies in the file, `format` its GGUF type; order[i] is the file's row that
    becomes row i. bias: float32 [rows], in the file's order, added to what products with this matrix give.
    release: called now and then, and at the end, with the number of bytes at the start of `raw` that are
    packed and not needed again.
    """
    def __init__(
        self,
        cpu: Cpu,
        format: str,
        raw: NDArray[np.uint8],
        rows: int,
        cols: int,
        order: NDArray[np.int32] | None = None,
        bias: NDArray[np.float32] | None = None,
        release: Callable[[int], object] | None = None,
    ) -> None: ...
    @property
    def rows(self) -> int: ...
    @property
    def cols(self) -> int: ...
    @property
    def num_bytes(self) -> int: ...

class Rows:
    """Activations: float32 [count, width] in a buffer for `capacity` rows; `quantised` makes room for the
    int8 form.
    """
    def __init__(self, capacity: int, width: int, quantised: bool = False) -> None: ...
    @property
    def capacity(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def count(self) -> int: ...
    def numpy(self) -> NDArray[np.float32]:
        """A view of the rows in use, [count, width]; it goes on living when the buffer is overwritten."""
    def fill(self, values: NDArray[np.float32]) -> None:
        """Copies [n, width] in; the buffer then holds n rows."""
    def quantised(self) -> tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.int32]]:
        """A copy of the int8 form an operation last made, x ~= (q + zero) * scale: q [count, width], scale
        and zero [count, width / 32].
        """

class KVPages:
    """Keys and values of every layer, as float32 (`f32`), float16 (`f16`) or int8 with a float16 scale for 32
    dimensions of a position (`q8`). A page of one layer and KV head holds 16 positions: K as [head_dim, 16],
    then V as [16, head_dim]; of q8 each is followed by its scales [head_dim / 32, 16].
    """
    def __init__(self, layers: int, pages: int, kv_heads: int, head_dim: int, kind: str) -> None: ...
    @property
    def layers(self) -> int: ...
    @property
    def pages(self) -> int: ...
    @property
    def page_bytes(self) -> int:
        """Bytes of one page over all layers."""
    def raw(self, layer: int) -> NDArray[np.uint8]:
        """A view of one layer's pages."""

class Batch:
    """The rows of one step, all int32: ids [rows], position [rows], sequence [rows] (a row of the page
    table), page_table [sequences, pages], output_rows [outputs] (the rows whose logits are wanted).
    """
    def __init__(
        self,
        ids: NDArray[np.int32],
        position: NDArray[np.int32],
        sequence: NDArray[np.int32],
        page_table: NDArray[np.int32],
        output_rows: NDArray[np.int32],
    ) -> None: ...
    @staticmethod
    def of_slices(slices: Sequence[tuple[Sequence[int], int, Sequence[int], int]]) -> Batch:
        """The same from one tuple for each sequence: its new ids, the position of the first, the pages of the
        whole sequence, and how many of its last rows want logits.
        """
    @property
    def rows(self) -> int: ...

class Embedding:
    """out[i] = scale * matrix[ids[i]], dequantised: [rows, cols]."""
    def __init__(self, cpu: Cpu, matrix: Matrix, scale: float = 1.0) -> None: ...
    def __call__(self, batch: Batch, out: Rows) -> None: ...

class Linear:
    """out = x W^T for one or several matrices side by side: x [rows, cols] -> out [rows, sum of their rows].

    `add`: out += instead. Quantised matrices multiply int8 activations, unless `exact`: then float32 ones.
    `before`: a norm or activation that x passes first, into `scratch` [rows, cols]; one call instead of two.
    """
    def __init__(
        self,
        cpu: Cpu,
        matrices: Sequence[Matrix],
        exact: bool = False,
        add: bool = False,
        before: RowOperation | None = None,
        scratch: Rows | None = None,
    ) -> None: ...
    def __call__(self, x: Rows, out: Rows) -> None: ...
    @property
    def num_bytes(self) -> int:
        """Bytes of weights that a one-row product reads."""
    @property
    def num_weights(self) -> int:
        """Multiply-adds of a one-row product."""

class RowOperation:
    """From row to row: called on its own, or bound in front of a product."""
    def __call__(self, x: Rows, out: Rows) -> None: ...

class RMSNorm(RowOperation):
    """out = x / sqrt(mean(x^2) + eps) * weight, row by row (https://arxiv.org/abs/1910.07467)."""
    def __init__(self, cpu: Cpu, weight: NDArray[np.float32], eps: float) -> None: ...

class LayerNorm(RowOperation):
    """out = (x - mean) / sqrt(variance + eps) * weight + bias, row by row (https://arxiv.org/abs/1607.06450)."""
    def __init__(
        self, cpu: Cpu, weight: NDArray[np.float32], bias: NDArray[np.float32], eps: float
    ) -> None: ...

class AddNorm:
    """out += RMSNorm(x): the norm after a product, in front of the residual sum."""
    def __init__(self, cpu: Cpu, weight: NDArray[np.float32], eps: float) -> None: ...
    def __call__(self, x: Rows, out: Rows) -> None: ...

class SwiGLU(RowOperation):
    """out = silu(gate) * up, gate_up = [gate | up]: [rows, 2 width] -> [rows, width]
    (https://arxiv.org/abs/2002.05202).
    """
    def __init__(self, cpu: Cpu) -> None: ...

class GeGLU(RowOperation):
    """out = gelu(gate) * up, with GELU's approximation by tanh: [rows, 2 width] -> [rows, width]."""
    def __init__(self, cpu: Cpu) -> None: ...

class GELU(RowOperation):
    """out = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 (https://arxiv.org/abs/1606.08415)."""
    def __init__(self, cpu: Cpu) -> None: ...

class PositionEmbedding:
    """x += table[position]: learned positions, table float32 [context, width]."""
    def __init__(self, cpu: Cpu, table: NDArray[np.float32]) -> None: ...
    def __call__(self, batch: Batch, x: Rows) -> None: ...

class RopeTable:
    """Cosines and sines of position * inverse_frequency, times `factor`: float32 [context, 2, head_dim / 2],
    the same bits everywhere. Computed as far as texts reach.
    """
    def __init__(self, inverse_frequency: NDArray[np.float32], context: int, factor: float = 1.0) -> None: ...
    def __len__(self) -> int:
        """The context."""
    def numpy(self) -> NDArray[np.float32]:
        """A view of the whole table, computed now."""

class RopeStore:
    """Makes q and k ready in place and stores k and v in the pages.

    qkv [rows, (heads + 2 kv_heads) * head_dim]. q_norm, k_norm [head_dim]: weights of an RMS norm over each
    head, first. cos_sin: rotates dimensions i and i + half by the position; those from
    2 * half on stay; None: no rotation (https://arxiv.org/abs/2104.09864).
    """
    def __init__(
        self,
        cpu: Cpu,
        cos_sin: RopeTable | None,
        pages: KVPages,
        layer: int,
        heads: int,
        q_norm: NDArray[np.float32] | None = None,
        k_norm: NDArray[np.float32] | None = None,
        eps: float = 0.0,
    ) -> None: ...
    def __call__(self, qkv: Rows, batch: Batch) -> None: ...

class Attention:
    """out = softmax(scale * q K^T) V over the pages, causal: qkv -> [rows, heads * head_dim].

    `before` rotates and stores qkv first. `window`: a row sees itself and the `window` - 1 positions before;
    0: all. `soft_cap`: scores become soft_cap * tanh(score / soft_cap); 0: they stay.
    """
    def __init__(
        self,
        cpu: Cpu,
        pages: KVPages,
        layer: int,
        heads: int,
        context: int,
        scale: float,
        before: RopeStore | None = None,
        window: int = 0,
        soft_cap: float = 0.0,
    ) -> None: ...
    def __call__(self, qkv: Rows, batch: Batch, out: Rows) -> None: ...

def read_all(products: Sequence[Linear], cpu: Cpu | None = None) -> int:
    """Reads all their weights once, in one job, and returns a checksum: what memory alone costs a step.

    `cpu`: other threads than the products' own.
    """

def int8_peak(cpu: Cpu, blocks: int) -> int:
    """Multiplies int8 in all threads and touches no memory; returns the number of multiply-adds done."""

def take_outputs(x: Rows, batch: Batch, out: Rows) -> None:
    """out = x[output_rows]: [outputs, width]."""

class Merger:
    """Byte-pair encoding by a vocabulary; then call `set_merges` or `set_places`. What they mean, and the
    order of merging: csrc/merger.h.

    tokens, offsets: a `StringArray`'s blob and offsets [tokens + 1]; kinds: int8 [tokens], values of
    `TokenKind`. Control tokens are never given.
    """
    def __init__(self, tokens: bytes, offsets: NDArray[np.int64], kinds: NDArray[np.int8]) -> None: ...
    def set_merges(self, merges: bytes, offsets: NDArray[np.int64]) -> int:
        """Two texts with a space between, the best first. The first that is not two tokens, or -1."""
    def set_places(self, places: NDArray[np.int32], unknown_id: int) -> None:
        """By score: places[i] is token i's, 0 the best. Bytes or `unknown_id` (-1: nothing) stand for unknown
        characters.
        """
    def encode(self, words: Sequence[str], whole: bool = False) -> list[int]:
        """The ids of the words, one after the other. whole: a word that is a token stays whole."""
