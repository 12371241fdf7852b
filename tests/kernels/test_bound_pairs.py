"""Two operations bound as one give the bits of two calls; a batch of slices is the batch of its arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kernels.support import (
    F32,
    FORMATS,
    ISAS,
    Ops,
    activations,
    assert_same_bits,
    columns_for,
    filled,
    native,
    raw_weights,
    twin,
)


def product(ops: Ops, cpu: Any, format: str, cols: int, *pair: Any) -> Any:
    raw = raw_weights(np.random.default_rng(0), format, 37, cols)
    return ops.Linear(cpu, [ops.Matrix(cpu, format, raw, 37, cols)], False, True, *pair)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("first", ["norm", "swiglu"])
@pytest.mark.parametrize("format", FORMATS)
def test_operation_before_a_product(format: str, first: str, isa: str) -> None:
    rng = np.random.default_rng(1)
    cols = columns_for(format, 64)
    x = activations(rng, 65, cols if first == "norm" else 2 * cols)
    results: list[F32] = []
    for ops, cpu in (native(isa, 3), twin()):
        before = ops.RMSNorm(cpu, np.linspace(-1, 2, cols, dtype=np.float32), 1e-5)
        before = before if first == "norm" else ops.SwiGLU(cpu)
        scratch, between = ops.Rows(65, cols, True), ops.Rows(65, cols, True)
        together, alone = product(ops, cpu, format, cols, before, scratch), product(ops, cpu, format, cols)
        for num_rows in (1, 7, 8, 65, 2):  # fewer rows after more: nothing of the last step may be left
            rows = filled(ops, x[:num_rows])
            outs = [filled(ops, np.ones((num_rows, 37), np.float32)) for _ in range(2)]
            together(rows, outs[0])
            before(rows, between)
            alone(between, outs[1])
            assert_same_bits(outs[0].numpy(), outs[1].numpy())
            assert_same_bits(scratch.numpy(), between.numpy())
            results.append(outs[0].numpy().copy())
    for actual, wanted in zip(results[:5], results[5:], strict=True):
        assert_same_bits(actual, wanted)


@pytest.mark.parametrize("isa", ISAS)
def test_store_before_attention(isa: str) -> None:
    caches, results = [], []
    for (ops, cpu), is_pair in ((native(isa), True), (native(isa), False), (twin(), True)):
        pages = ops.KVPages(1, 4, 2, 32, "f16")
        table = ops.RopeTable(np.linspace(1, 0, 16, dtype=np.float32), 64)
        store = ops.RopeStore(cpu, table, pages, 0, 6)
        attention = ops.Attention(cpu, pages, 0, 6, 64, 0.2, *([store] if is_pair else []))
        batch = ops.Batch.of_slices([([0] * 40, 0, [3, 0, 2], 1), ([0] * 9, 0, [1], 1)])
        qkv = filled(ops, activations(np.random.default_rng(2), 49, 320))
        out = ops.Rows(49, 192)
        if not is_pair:
            store(qkv, batch)
        attention(qkv, batch, out)
        caches.append(pages.raw(0).copy())
        results.append((qkv.numpy().copy(), out.numpy().copy()))
    for cache, (qkv, out) in zip(caches[1:], results[1:], strict=True):
        assert_same_bits(caches[0], cache)
        assert_same_bits(results[0][0], qkv)
        assert_same_bits(results[0][1], out)


def test_slices_are_the_arrays_they_stand_for() -> None:
    """Ids, output rows, positions and pages, each seen through an operation."""
    slices = [([5, 6, 7], 14, [2, 0], 2), ([8], 3, [1], 1), ([9, 10], 0, [4], 0), ([11], 33, [6, 5, 3], 1)]
    arrays = twin()[0].Batch.of_slices(slices)
    assert arrays.ids.tolist() == [5, 6, 7, 8, 9, 10, 11]
    assert arrays.position.tolist() == [14, 15, 16, 3, 0, 1, 33]
    assert arrays.sequence.tolist() == [0, 0, 0, 1, 2, 2, 3]
    assert arrays.page_table.tolist() == [[2, 0, 0], [1, 0, 0], [4, 0, 0], [6, 5, 3]]
    assert arrays.output_rows.tolist() == [1, 2, 3, 6]
    ops, cpu = native(ISAS[0])
    seen = []
    for batch in (
        ops.Batch.of_slices(slices),
        ops.Batch(arrays.ids, arrays.position, arrays.sequence, arrays.page_table, arrays.output_rows),
    ):
        assert batch.rows == 7
        embedded, taken, pages = ops.Rows(7, 32), ops.Rows(4, 32), ops.KVPages(1, 7, 1, 16, "f32")
        raw = raw_weights(np.random.default_rng(0), "F32", 12, 32)
        ops.Embedding(cpu, ops.Matrix(cpu, "F32", raw, 12, 32))(batch, embedded)
        ops.take_outputs(embedded, batch, taken)
        qkv = filled(ops, activations(np.random.default_rng(1), 7, 48))
        ops.RopeStore(cpu, ops.RopeTable(np.ones(8, np.float32), 64), pages, 0, 1)(qkv, batch)
        seen.append((embedded.numpy(), taken.numpy(), pages.raw(0)))
    for first, second in zip(*seen, strict=True):
        assert_same_bits(first, second)
