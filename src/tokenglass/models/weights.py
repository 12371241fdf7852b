"""From a file's tensors to bound operations: names, shapes, packing.

Checkpoint quirks stop here. A tensor is checked against the shape the model expects and packed by all
threads; its mapped pages are given back meanwhile, so that weights and mapped file together stay near the
file's size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tokenglass import kernels
from tokenglass.errors import ModelFileError
from tokenglass.formats import ModelSource, TensorInfo
from tokenglass.kernels import Kernels


@dataclass(frozen=True)
class Space:
    """What a model is made room for: positions, KV pages and their numbers, rows of a step and of logits."""

    context_length: int
    num_pages: int
    kv: str  # f32, f16 or q8
    max_rows: int
    max_outputs: int


class Weights:
    """The tensors of one file, packed for one `cpu`.

    exact: products take float32 activations; no weight loses a bit in either mode. ops: the kernels to bind,
    `tokenglass.kernels` or its numpy twin `kernels.reference`.
    """

    def __init__(self, file: ModelSource, cpu: kernels.Cpu, *, exact: bool, ops: Kernels = kernels) -> None:
        self.file = file
        self.cpu = cpu
        self.exact = exact
        self.ops = ops
        self.notes: list[str] = []  # what a user should know about how the file's types run
        self._unused = set(file.tensors)

    def has(self, name: str) -> bool:
        """Whether the file has this tensor."""
        return name in self.file.tensors

    def checked(self, name: str, shape: tuple[int, ...]) -> TensorInfo:
        """Where this tensor lies. ModelFileError: it is missing or has another shape."""
        info = self.file.tensors.get(name)
        if info is None:
            raise ModelFileError(self.file.path, f"tensor {name}", "is missing")
        if info.shape != shape:
            raise ModelFileError(
                self.file.path, f"tensor {name}", f"has shape {list(info.shape)}, expected {list(shape)}"
            )
        self._unused.discard(name)
        return info

    def check_all_used(self) -> None:
        """ModelFileError names a tensor that no operation took: the model would run a little wrong."""
        if self._unused:
            name = min(self._unused)
            arch = self.file.get("general.architecture", str)
            raise ModelFileError(self.file.path, f"tensor {name}", f"is not known in the architecture {arch}")

    def vector(self, name: str, length: int) -> NDArray[np.float32]:
        """A small tensor as float32 [length]."""
        self.checked(name, (length,))
        return self.file.floats(name)

    def table(self, name: str, cols: int, vocab: int) -> kernels.Matrix:
        """A matrix with one row for each of `vocab` tokens, and perhaps more that belong to none."""
        rows = self.file.tensors[name].shape[0] if self.has(name) else 0
        if rows < vocab:
            raise ModelFileError(self.file.path, f"tensor {name}", f"has {rows} rows for {vocab} tokens")
        return self.matrix(name, rows, cols)

    def matrix(
        self, name: str, rows: int, cols: int, *, order: NDArray[np.int32] | None = None
    ) -> kernels.Matrix:
        """Packed weights [rows, cols], and their bias if the file has one; order[i] is the file's row that
        becomes row i. No embedding has a bias.
        """
        info = self.checked(name, (rows, cols))
        type_name, raw = info.type.name, self.file.raw(name)
        if not self.ops.has_panels(type_name):
            raise ModelFileError(self.file.path, f"tensor {name}", f"{type_name} is not supported yet")
        bias_name = f"{name.removesuffix('.weight')}.bias"
        bias = (
            self.vector(bias_name, rows) if self.has(bias_name) and bias_name != "token_embd.bias" else None
        )
        release = partial(self.file.release, name)
        matrix: kernels.Matrix = self.ops.Matrix(self.cpu, type_name, raw, rows, cols, order, bias, release)
        return matrix

    def norm(self, name: str, length: int, eps: float) -> kernels.RMSNorm:
        """An RMS norm with this tensor as its weights."""
        norm: kernels.RMSNorm = self.ops.RMSNorm(self.cpu, self.vector(name, length), eps)
        return norm

    def layer_norm(self, stem: str, length: int, eps: float) -> kernels.LayerNorm:
        """A layer norm with these tensors as its weights and its bias."""
        weight, bias = (self.vector(f"{stem}.{last}", length) for last in ("weight", "bias"))
        norm: kernels.LayerNorm = self.ops.LayerNorm(self.cpu, weight, bias, eps)
        return norm

    def block(self, i: int) -> Block:
        """The tensors of block `i`."""
        return Block(self, f"blk.{i}.")

    def linear(
        self,
        matrices: Sequence[kernels.Matrix],
        *,
        add: bool = False,
        before: kernels.RowOperation | None = None,
        scratch: kernels.Rows | None = None,
    ) -> kernels.Linear:
        """The product with these matrices side by side, in the mode of this load; x passes `before`."""
        product: kernels.Linear = self.ops.Linear(self.cpu, matrices, self.exact, add, before, scratch)
        return product


@dataclass(frozen=True)
class Block:
    """The tensors of one block, by the middle of their names: `attn_q` is `blk.3.attn_q.weight`."""

    weights: Weights
    prefix: str

    def matrix(
        self, kind: str, rows: int, cols: int, order: NDArray[np.int32] | None = None
    ) -> kernels.Matrix:
        """As `Weights.matrix`."""
        return self.weights.matrix(f"{self.prefix}{kind}.weight", rows, cols, order=order)

    def norm(self, kind: str, length: int, eps: float) -> kernels.RMSNorm:
        """As `Weights.norm`."""
        return self.weights.norm(f"{self.prefix}{kind}.weight", length, eps)

    def layer_norm(self, kind: str, length: int, eps: float) -> kernels.LayerNorm:
        """As `Weights.layer_norm`."""
        return self.weights.layer_norm(f"{self.prefix}{kind}", length, eps)

    def vector(self, kind: str, length: int) -> NDArray[np.float32]:
        """As `Weights.vector`."""
        return self.weights.vector(f"{self.prefix}{kind}.weight", length)


def unpermuted_rows(num_heads: int, head_dim: int) -> NDArray[np.int32]:
    """Row order that undoes the `llama` GGUF layout of q and k.

    The file interleaves each head's rotation pairs (2i and 2i+1); the kernels rotate i with i + head_dim / 2.
    """
    rows = np.arange(num_heads * head_dim, dtype=np.int32).reshape(num_heads, head_dim // 2, 2)
    return np.ascontiguousarray(rows.swapaxes(1, 2)).reshape(-1)
