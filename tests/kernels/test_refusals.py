"""A wrong argument is a ValueError or TypeError before anything is read or written, never a crash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.kernels.support import FORMATS, ISAS, filled, int32
from tokenglass.kernels import (
    GELU,
    AddNorm,
    Attention,
    Batch,
    Cpu,
    Embedding,
    KVPages,
    LayerNorm,
    Linear,
    Matrix,
    PositionEmbedding,
    RMSNorm,
    RopeStore,
    RopeTable,
    Rows,
    SwiGLU,
    has_panels,
    take_outputs,
)
from tokenglass.kernels import _native as native

REFUSALS = (ValueError, TypeError)
CPU = Cpu(2, ISAS[0])
NONE: Any = None


def untyped(value: object) -> Any:
    """A value that the type checker would refuse here."""
    return value


def matrix(rows: int = 16, cols: int = 32, format: str = "F32") -> Matrix:
    return Matrix(CPU, format, np.zeros(rows * cols * 4, np.uint8), rows, cols)


def rows(count: int, width: int, *, capacity: int | None = None, quantised: bool = False) -> Rows:
    buffer: Rows = filled(native, np.ones((count, width), np.float32), capacity=capacity, quantised=quantised)
    return buffer


def batch(
    num_rows: int = 2,
    position: int = 0,
    *,
    page: int = 0,
    table_width: int = 4,
    id: int = 0,
    outputs: int = 1,
) -> Batch:
    zeros = np.zeros(num_rows, np.int32)
    table = np.full((1, table_width), page, np.int32)
    return Batch(zeros + np.int32(id), zeros + np.int32(position), zeros, table, np.zeros(outputs, np.int32))


PAGES = KVPages(2, 4, 2, 16, "f16")
TABLE = RopeTable(np.ones(8, np.float32), 64)
Z, F, B = int32(0), np.ones(32, np.float32), np.zeros(128, np.uint8)

# Building: no object comes of it.
BUILDS: dict[str, Callable[[], object]] = {
    "no threads": lambda: Cpu(0, ISAS[0]),
    "negative threads": lambda: Cpu(-1, ISAS[0]),
    "too many threads": lambda: Cpu(1025, ISAS[0]),
    "unknown instruction set": lambda: Cpu(1, "sse9"),
    "less than no memory": lambda: Cpu(1, ISAS[0]).reserve(-1),
    "more memory than addresses": lambda: Cpu(1, ISAS[0]).reserve(1 << 46),
    "empty instruction set": lambda: Cpu(1, ""),
    "matrix of unknown format": lambda: Matrix(CPU, "Q9_9", B, 1, 32),
    "matrix of empty format": lambda: Matrix(CPU, "", B, 1, 32),
    "matrix too short": lambda: Matrix(CPU, "F32", B[:-1], 1, 32),
    "matrix too long": lambda: Matrix(CPU, "F32", np.zeros(129, np.uint8), 1, 32),
    "matrix without rows": lambda: Matrix(CPU, "F32", B[:0], 0, 32),
    "matrix of negative shape": lambda: Matrix(CPU, "F32", B, -1, -32),
    "matrix whose bytes wrap around": lambda: Matrix(CPU, "F32", B, 1 << 62, 1 << 62),
    "matrix whose rows wrap around": lambda: Matrix(CPU, "F32", B, (1 << 32) + 1, 32),
    "matrix of half a block": lambda: Matrix(CPU, "Q8_0", np.zeros(34, np.uint8), 1, 33),
    "matrix of strided bytes": lambda: Matrix(CPU, "F32", np.zeros(256, np.uint8)[::2], 1, 32),
    "matrix of signed bytes": lambda: Matrix(CPU, "F32", untyped(B.view(np.int8)), 1, 32),
    "matrix of 2 dimensions": lambda: Matrix(CPU, "F32", untyped(B.reshape(1, 128)), 1, 32),
    "matrix of a list": lambda: Matrix(CPU, "F32", untyped([0] * 128), 1, 32),
    "matrix with short order": lambda: Matrix(CPU, "F32", np.zeros(256, np.uint8), 2, 32, Z),
    "matrix with order outside": lambda: Matrix(CPU, "F32", B, 1, 32, int32(1)),
    "matrix with negative order": lambda: Matrix(CPU, "F32", B, 1, 32, int32(-1)),
    "matrix with 64-bit order": lambda: Matrix(CPU, "F32", B, 1, 32, untyped(np.zeros(1, np.int64))),
    "matrix without a cpu": lambda: Matrix(NONE, "F32", B, 1, 32),
    "rows without capacity": lambda: Rows(0, 32),
    "rows without width": lambda: Rows(1, 0),
    "rows of negative width": lambda: Rows(1, -32),
    "rows whose width wraps around": lambda: Rows(1, 1 << 32),
    "rows that cannot be quantised": lambda: Rows(1, 33, True),
    "pages without layers": lambda: KVPages(0, 1, 1, 16, "f16"),
    "pages without pages": lambda: KVPages(1, 0, 1, 16, "f16"),
    "pages of negative heads": lambda: KVPages(1, 1, -1, 16, "f16"),
    "pages of odd head_dim": lambda: KVPages(1, 1, 1, 24, "f16"),
    "pages of large head_dim": lambda: KVPages(1, 1, 1, 272, "f16"),
    "pages beyond any memory": lambda: KVPages(4095, (1 << 24) - 1, 4095, 256, "f32"),
    "pages of unknown numbers": lambda: KVPages(1, 1, 1, 16, "f8"),
    "attention of a negative window": lambda: Attention(CPU, PAGES, 0, 2, 64, 1.0, None, -1),
    "attention of a negative cap": lambda: Attention(CPU, PAGES, 0, 2, 64, 1.0, None, 0, -1.0),
    "attention of a NaN cap": lambda: Attention(CPU, PAGES, 0, 2, 64, 1.0, None, 0, float("nan")),
    "batch without rows": lambda: Batch(Z[:0], Z[:0], Z[:0], Z[None], Z[:0]),
    "batch of unequal lengths": lambda: Batch(int32(0, 0), Z, int32(0, 0), Z[None], Z),
    "batch of 64-bit ids": lambda: Batch(untyped(np.array([1 << 32])), Z, Z, Z[None], Z),
    "batch of float ids": lambda: Batch(untyped(np.array([1.5])), Z, Z, Z[None], Z),
    "batch of strided ids": lambda: Batch(int32(0, 0, 0)[::2], int32(0, 0), int32(0, 0), Z[None], Z),
    "batch with a flat table": lambda: Batch(Z, Z, Z, untyped(Z), Z),
    "batch without pages": lambda: Batch(Z, Z, Z, np.zeros((1, 0), np.int32), Z),
    "batch with sequence outside": lambda: Batch(Z, Z, int32(1), Z[None], Z),
    "batch with negative sequence": lambda: Batch(Z, Z, int32(-1), Z[None], Z),
    "batch with position outside": lambda: Batch(Z, int32(16), Z, Z[None], Z),
    "batch with negative position": lambda: Batch(Z, int32(-1), Z, Z[None], Z),
    "batch with negative page": lambda: Batch(Z, Z, Z, int32(-1)[None], Z),
    "batch with output outside": lambda: Batch(Z, Z, Z, Z[None], int32(1)),
    "batch with negative output": lambda: Batch(Z, Z, Z, Z[None], int32(-1)),
    "slices of nothing": lambda: Batch.of_slices([]),
    "slices without ids": lambda: Batch.of_slices([([], 0, [0], 0)]),
    "slice without pages": lambda: Batch.of_slices([([1], 0, [], 1)]),
    "slice beyond its pages": lambda: Batch.of_slices([([1, 2], 15, [0], 1)]),
    "slice beyond its pages, not its neighbour's": lambda: Batch.of_slices(
        [([1], 16, [0], 1), ([1], 0, [1, 2], 1)]
    ),
    "slice that starts before 0": lambda: Batch.of_slices([([1], -1, [0], 1)]),
    "slice that starts far out": lambda: Batch.of_slices([([1], (1 << 31) - 1, [0], 1)]),
    "slice of more outputs than ids": lambda: Batch.of_slices([([1], 0, [0], 2)]),
    "slice of negative outputs": lambda: Batch.of_slices([([1], 0, [0], -1)]),
    "slice of a negative page": lambda: Batch.of_slices([([1], 0, [-1], 1)]),
    "slice of ids beyond 32 bits": lambda: Batch.of_slices([([1 << 32], 0, [0], 1)]),
    "slice of float ids": lambda: Batch.of_slices([(untyped([1.5]), 0, [0], 1)]),
    "slice of three": lambda: Batch.of_slices(untyped([([1], 0, [0])])),
    "embedding without a matrix": lambda: Embedding(CPU, NONE),
    "product of nothing": lambda: Linear(CPU, []),
    "product of None": lambda: Linear(CPU, untyped([None])),
    "product of unequal columns": lambda: Linear(CPU, [matrix(cols=32), matrix(cols=64)]),
    "product whose width wraps around": lambda: Linear(CPU, [matrix(1 << 15, 1)] * ((1 << 17) + 1)),
    "product with an operation but no scratch": lambda: Linear(CPU, [matrix()], before=RMSNorm(CPU, F, 1e-5)),
    "product with scratch but no operation": lambda: Linear(CPU, [matrix()], scratch=Rows(2, 32)),
    "product with scratch of another width": lambda: Linear(
        CPU, [matrix()], before=RMSNorm(CPU, F, 1e-5), scratch=Rows(2, 64)
    ),
    "product with a norm of another width": lambda: Linear(
        CPU, [matrix()], before=RMSNorm(CPU, F[:16], 1e-5), scratch=Rows(2, 32)
    ),
    "product with another product before": lambda: Linear(
        CPU, [matrix()], before=untyped(Linear(CPU, [matrix()])), scratch=Rows(2, 32)
    ),
    "norm without weights": lambda: RMSNorm(CPU, F[:0], 1e-5),
    "norm of negative eps": lambda: RMSNorm(CPU, F, -1.0),
    "norm of NaN eps": lambda: RMSNorm(CPU, F, float("nan")),
    "norm of float64 weights": lambda: RMSNorm(CPU, untyped(F.astype(np.float64)), 1e-5),
    "norm of strided weights": lambda: RMSNorm(CPU, F[::2], 1e-5),
    "norm of strided bias": lambda: LayerNorm(CPU, F[:16], F[::2], 1e-5),
    "norm of a bias of another width": lambda: LayerNorm(CPU, F, F[:16], 1e-5),
    "layer norm without weights": lambda: LayerNorm(CPU, F[:0], F[:0], 1e-5),
    "norm that adds, without weights": lambda: AddNorm(CPU, F[:0], 1e-5),
    "norm that adds, of negative eps": lambda: AddNorm(CPU, F, -1.0),
    "product with a norm that adds before": lambda: Linear(
        CPU, [matrix()], before=untyped(AddNorm(CPU, F, 1e-5)), scratch=Rows(2, 32)
    ),
    "positions without rows": lambda: PositionEmbedding(CPU, np.zeros((0, 32), np.float32)),
    "positions in float64": lambda: PositionEmbedding(CPU, untyped(np.zeros((4, 32)))),
    "rotations of more than head_dim": lambda: RopeStore(CPU, RopeTable(F[:9], 64), PAGES, 0, 2),
    "norm of queries of another width": lambda: RopeStore(CPU, TABLE, PAGES, 0, 2, F),
    "norm of keys of another width": lambda: RopeStore(CPU, TABLE, PAGES, 0, 2, None, F),
    "norm of heads of negative eps": lambda: RopeStore(CPU, TABLE, PAGES, 0, 2, F[:16], F[:16], -1.0),
    "rotations as an array": lambda: RopeStore(CPU, untyped(TABLE.numpy()), PAGES, 0, 2),
    "rotations of another layer": lambda: RopeStore(CPU, TABLE, PAGES, 2, 2),
    "rotations of a negative layer": lambda: RopeStore(CPU, TABLE, PAGES, -1, 2),
    "rotations of uneven heads": lambda: RopeStore(CPU, TABLE, PAGES, 0, 3),
    "attention without heads": lambda: Attention(CPU, PAGES, 0, 0, 64, 1.0),
    "attention of uneven heads": lambda: Attention(CPU, PAGES, 0, 3, 64, 1.0),
    "attention of another layer": lambda: Attention(CPU, PAGES, 2, 2, 64, 1.0),
    "attention without context": lambda: Attention(CPU, PAGES, 0, 2, 0, 1.0),
    "attention after another layer's store": lambda: Attention(
        CPU, PAGES, 0, 2, 64, 1.0, RopeStore(CPU, TABLE, PAGES, 1, 2)
    ),
    "attention after a store of other heads": lambda: Attention(
        CPU, PAGES, 0, 2, 64, 1.0, RopeStore(CPU, TABLE, PAGES, 0, 4)
    ),
    "attention after a store to other pages": lambda: Attention(
        CPU, PAGES, 0, 2, 64, 1.0, RopeStore(CPU, TABLE, KVPages(2, 4, 2, 16, "f16"), 0, 2)
    ),
    "attention after a store of a shorter context": lambda: Attention(
        CPU, PAGES, 0, 2, 65, 1.0, RopeStore(CPU, TABLE, PAGES, 0, 2)
    ),
    "attention without pages": lambda: Attention(CPU, NONE, 0, 2, 64, 1.0),
    "swiglu without a cpu": lambda: SwiGLU(NONE),
    "rope table without frequencies": lambda: RopeTable(F[:0], 4),
    "rope table without context": lambda: RopeTable(F, 0),
    "rope table of infinity": lambda: RopeTable(F / np.float32(0), 4),
    "rope table of NaN": lambda: RopeTable(F * np.float32("nan"), 4),
    "rope table in float64": lambda: RopeTable(untyped(F.astype(np.float64)), 4),
}


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS)
def test_what_is_wrong_is_not_built(build: Callable[[], object]) -> None:
    with pytest.raises(REFUSALS):
        build()


@dataclass
class Bound:
    """Operations over 32 columns, 2 heads of 16, 2 KV heads; `out` buffers hold 3s that must survive."""

    cpu: Cpu
    embedding: Embedding
    linear: Linear
    int8: Linear
    adding: Linear
    norm: RMSNorm
    swiglu: SwiGLU
    store: RopeStore
    attention: Attention
    pages: KVPages
    norm_product: Linear
    layer_norm: LayerNorm
    add_norm: AddNorm
    positions: PositionEmbedding
    gelu: GELU
    store_attention: Attention


@pytest.fixture(scope="module")
def bound() -> Bound:
    q8 = Matrix(CPU, "Q8_0", np.zeros(16 * 34, np.uint8), 16, 32)
    return Bound(
        CPU,
        Embedding(CPU, matrix()),
        Linear(CPU, [matrix()]),
        Linear(CPU, [q8]),
        Linear(CPU, [matrix()], add=True),
        RMSNorm(CPU, F, 1e-5),
        SwiGLU(CPU),
        RopeStore(CPU, TABLE, PAGES, 0, 2),
        Attention(CPU, PAGES, 0, 2, 64, 0.25),
        PAGES,
        Linear(CPU, [matrix()], before=RMSNorm(CPU, F, 1e-5), scratch=Rows(2, 32)),
        LayerNorm(CPU, F, F, 1e-5),
        AddNorm(CPU, F, 1e-5),
        PositionEmbedding(CPU, np.ones((4, 32), np.float32)),
        GELU(CPU),
        Attention(CPU, PAGES, 0, 2, 64, 0.25, RopeStore(CPU, TABLE, PAGES, 0, 2)),
    )


# Calls: the operation, its inputs, and `out`, which holds 3s before and after.
CALLS: dict[str, tuple[tuple[int, int], Callable[[Bound, Rows], object]]] = {
    "embedding into another width": ((2, 33), lambda o, out: o.embedding(batch(), out)),
    "embedding of an id outside": ((2, 32), lambda o, out: o.embedding(batch(id=16), out)),
    "embedding of a negative id": ((2, 32), lambda o, out: o.embedding(batch(id=-1), out)),
    "embedding of too many rows": ((2, 32), lambda o, out: o.embedding(batch(3), out)),
    "product of another width": ((2, 16), lambda o, out: o.linear(rows(2, 31), out)),
    "product into another width": ((2, 17), lambda o, out: o.linear(rows(2, 32), out)),
    "product of too many rows": ((2, 16), lambda o, out: o.linear(rows(3, 32), out)),
    "product without int8 rows": ((2, 16), lambda o, out: o.int8(rows(2, 32), out)),
    "sum of more rows than there are": ((2, 16), lambda o, out: o.adding(rows(1, 32), out)),
    "product of None": ((2, 16), lambda o, out: o.linear(NONE, out)),
    "norm of another width": ((2, 32), lambda o, out: o.norm(rows(2, 33), out)),
    "norm into another width": ((2, 31), lambda o, out: o.norm(rows(2, 32), out)),
    "norm of too many rows": ((2, 32), lambda o, out: o.norm(rows(3, 32), out)),
    "layer norm of another width": ((2, 32), lambda o, out: o.layer_norm(rows(2, 33), out)),
    "norm that adds, of another width": ((2, 32), lambda o, out: o.add_norm(rows(2, 33), out)),
    "norm that adds to another width": ((2, 31), lambda o, out: o.add_norm(rows(2, 32), out)),
    "norm that adds to other rows": ((2, 32), lambda o, out: o.add_norm(rows(1, 32), out)),
    "norm that adds in place": ((2, 32), lambda o, out: o.add_norm(out, out)),
    "positions of another width": ((2, 31), lambda o, out: o.positions(batch(), out)),
    "positions of other rows": ((2, 32), lambda o, out: o.positions(batch(3), out)),
    "positions beyond the table": ((2, 32), lambda o, out: o.positions(batch(position=4), out)),
    "gelu of another width": ((2, 16), lambda o, out: o.gelu(rows(2, 32), out)),
    "norm and product of another width": ((2, 16), lambda o, out: o.norm_product(rows(2, 31), out)),
    "norm and product into another width": ((2, 17), lambda o, out: o.norm_product(rows(2, 32), out)),
    "norm and product beyond the scratch": ((3, 16), lambda o, out: o.norm_product(rows(3, 32), out)),
    "store and attention into another width": (
        (2, 33),
        lambda o, out: o.store_attention(rows(2, 96), batch(), out),
    ),
    "store and attention of too many rows": (
        (2, 32),
        lambda o, out: o.store_attention(rows(3, 96), batch(3), out),
    ),
    "store and attention to a page outside": (
        (2, 32),
        lambda o, out: o.store_attention(rows(2, 96), batch(page=4), out),
    ),
    "swiglu of another width": ((2, 16), lambda o, out: o.swiglu(rows(2, 31), out)),
    "swiglu of an odd width": ((2, 17), lambda o, out: o.swiglu(rows(2, 34), out)),
    "swiglu of too many rows": ((2, 16), lambda o, out: o.swiglu(rows(3, 32), out)),
    "store of another width": ((2, 95), lambda o, out: o.store(out, batch())),
    "store of other rows": ((3, 96), lambda o, out: o.store(out, batch())),
    "store to a page outside": ((2, 96), lambda o, out: o.store(out, batch(page=4))),
    "store beyond the context": ((2, 96), lambda o, out: o.store(out, batch(position=64, table_width=5))),
    "attention of another width": ((2, 32), lambda o, out: o.attention(rows(2, 95), batch(), out)),
    "attention into another width": ((2, 33), lambda o, out: o.attention(rows(2, 96), batch(), out)),
    "attention of other rows": ((3, 32), lambda o, out: o.attention(rows(3, 96), batch(), out)),
    "attention of too many rows": ((2, 32), lambda o, out: o.attention(rows(3, 96), batch(3), out)),
    "attention to a page outside": ((2, 32), lambda o, out: o.attention(rows(2, 96), batch(page=4), out)),
    "attention beyond the context": (
        (2, 32),
        lambda o, out: o.attention(rows(2, 96), batch(position=64, table_width=5), out),
    ),
    "outputs of another width": ((2, 32), lambda _, out: take_outputs(rows(2, 33), batch(), out)),
    "outputs of other rows": ((2, 32), lambda _, out: take_outputs(rows(3, 32), batch(), out)),
    "more outputs than fit": ((2, 32), lambda _, out: take_outputs(rows(2, 32), batch(outputs=3), out)),
    "outputs in place": ((2, 32), lambda _, out: take_outputs(out, batch(), out)),
    "fill of another width": ((2, 32), lambda _, out: out.fill(np.ones((1, 31), np.float32))),
    "fill of too many rows": ((2, 32), lambda _, out: out.fill(np.ones((3, 32), np.float32))),
    "fill of float64": ((2, 32), lambda _, out: out.fill(untyped(np.ones((1, 32))))),
    "fill of a strided array": ((2, 32), lambda _, out: out.fill(np.ones((32, 2), np.float32).T)),
    "fill of one dimension": ((2, 32), lambda _, out: out.fill(untyped(F))),
    "int8 form that was never made": ((2, 32), lambda _, out: out.quantised()),
    "argmax of a row outside": ((2, 32), lambda o, out: o.cpu.argmax(out, 2, 32)),
    "argmax of a negative row": ((2, 32), lambda o, out: o.cpu.argmax(out, -1, 32)),
    "argmax of a wider vocabulary": ((2, 32), lambda o, out: o.cpu.argmax(out, 0, 33)),
    "argmax of no vocabulary": ((2, 32), lambda o, out: o.cpu.argmax(out, 0, 0)),
    "top of a row outside": ((2, 32), lambda o, out: o.cpu.top(out, 2, 32, 1)),
    "top of none": ((2, 32), lambda o, out: o.cpu.top(out, 0, 32, 0)),
    "top of a negative number": ((2, 32), lambda o, out: o.cpu.top(out, 0, 32, -1)),
    "softmax at temperature 0": ((2, 32), lambda o, out: o.cpu.softmax_weights(out, 0, 32, 0.0)),
    "softmax at temperature NaN": ((2, 32), lambda o, out: o.cpu.softmax_weights(out, 0, 32, float("nan"))),
    "softmax of a row outside": ((2, 32), lambda o, out: o.cpu.softmax_weights(out, 2, 32, 1.0)),
    "view of a layer outside": ((2, 32), lambda o, _: o.pages.raw(2)),
    "view of a negative layer": ((2, 32), lambda o, _: o.pages.raw(-1)),
}


@pytest.mark.parametrize(("shape", "call"), CALLS.values(), ids=CALLS)
def test_what_is_refused_writes_nothing(
    bound: Bound, shape: tuple[int, int], call: Callable[[Bound, Rows], object]
) -> None:
    out: Rows = filled(native, np.full(shape, 3, np.float32))
    pages: list[NDArray[np.uint8]] = [bound.pages.raw(layer).copy() for layer in (0, 1)]
    with pytest.raises(REFUSALS):
        call(bound, out)
    assert out.count == shape[0]
    assert (out.numpy() == 3).all()
    for layer in (0, 1):
        assert (bound.pages.raw(layer) == pages[layer]).all()


def test_an_int8_form_is_gone_when_its_rows_change(bound: Bound) -> None:
    x = rows(2, 32, quantised=True)
    bound.int8(x, Rows(2, 16))
    assert x.quantised()[0].shape == (2, 32)
    x.fill(np.ones((1, 32), np.float32))
    with pytest.raises(ValueError, match="quantised"):
        x.quantised()


def test_no_rows_are_no_work(bound: Bound) -> None:
    out = rows(2, 16)
    bound.linear(rows(0, 32, capacity=1), out)
    assert out.numpy().shape == (0, 16)
    taken = rows(2, 32)
    take_outputs(rows(2, 32), batch(outputs=0), taken)
    assert taken.count == 0


def test_rotations_outlive_their_table() -> None:
    table = RopeTable(np.ones(8, np.float32), 64)
    store = RopeStore(CPU, table, PAGES, 0, 2)
    wanted, qkv = rows(2, 96), rows(2, 96)
    store(wanted, batch(position=5))
    del table
    np.ones(64 * 16, np.float32)  # would take its place
    store(qkv, batch(position=5))
    assert (qkv.numpy() == wanted.numpy()).all()


def test_read_only_bytes_are_welcome() -> None:
    """A mapped file is read-only."""
    raw = np.frombuffer(np.ones(32, np.float32).tobytes(), np.uint8)
    assert not raw.flags.writeable
    out = rows(1, 1)
    Linear(CPU, [Matrix(CPU, "F32", raw, 1, 32)])(rows(1, 32), out)
    assert out.numpy()[0, 0] == 32


@pytest.mark.parametrize("num_bytes", [0, 1, 3 << 20, 64 << 20])
def test_weights_lie_in_reserved_memory_and_beyond_it(num_bytes: int) -> None:
    raw = np.random.default_rng(1).standard_normal(32 * 16384, np.float32)  # two matrices of 2 MiB
    x = np.ones((1, 16384), np.float32)
    cpu, scores = Cpu(1, ISAS[0]), []
    cpu.reserve(num_bytes)
    for with_cpu in (cpu, CPU):
        halves = [
            Matrix(with_cpu, "F32", half.view(np.uint8), 32, 16384) for half in np.split(np.tile(raw, 2), 2)
        ]
        source, out = Rows(1, 16384), Rows(1, 64)
        source.fill(x)
        Linear(with_cpu, halves)(source, out)
        scores.append(out.numpy().copy())
    assert np.abs(scores[0]).max() > 0
    assert (scores[0] == scores[1]).all()


def test_formats_with_panels() -> None:
    assert all(map(has_panels, FORMATS))
    assert not any(map(has_panels, ("", "q8_0", "Q8_K", "IQ4_XS")))
