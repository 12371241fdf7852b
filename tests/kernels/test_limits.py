"""The two limits of the machine: that they do the work they are timed for. Speeds are not judged."""

from __future__ import annotations

import pytest

from tests.kernels.support import ISAS, native, twin
from tests.kernels.test_linear import Product


@pytest.mark.parametrize("isa", ISAS)
def test_every_byte_is_read_for_the_memory_limit(isa: str) -> None:
    one = Product((("Q8_0", 512), ("F32", 16)), cols=64, num_rows=1, weights="extreme")
    other = Product((("Q4_1", 48),), cols=96, num_rows=1)
    sums = [
        ops.read_all([one.bind(ops, cpu), other.bind(ops, cpu)])
        for ops, cpu in (native(isa), native("plain", 1))
    ]
    assert sums[0] == sums[1]
    ops, cpu = native(isa)
    assert ops.read_all([one.bind(ops, cpu), other.bind(ops, cpu)], ops.Cpu(1, isa)) == sums[0]


@pytest.mark.parametrize("isa", ISAS)
def test_multiply_adds_are_counted_by_blocks(isa: str) -> None:
    ops, cpu = native(isa)
    one = ops.int8_peak(cpu, 1)
    assert one > 1_000_000
    assert ops.int8_peak(cpu, 3) == 3 * one
    with pytest.raises(ValueError, match="blocks"):
        ops.int8_peak(cpu, 0)


def test_a_product_counts_its_weights() -> None:
    product = Product((("Q4_0", 32), ("Q4_0", 17)), cols=64, num_rows=1)
    for ops, cpu in (native(ISAS[0]), twin()):
        assert product.bind(ops, cpu).num_weights == (32 + 17) * 64


def test_time_in_products_is_part_of_the_time_in_operations() -> None:
    ops, cpu = native(ISAS[0])
    product = Product((("Q4_0", 32),), cols=64, num_rows=2)
    product.run(ops, cpu)
    assert cpu.product_seconds == 0.0
    cpu.is_timed = True
    product.run(ops, cpu)
    assert 0 < cpu.product_seconds <= cpu.op_seconds
