"""Passes over the vocabulary: the best token, the best few and the softmax weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.kernels.support import F32, ISAS, assert_same_bits, filled, native, twin

SIZES = [1, 2, 15, 16, 17, 100, 4096, 4097, 8191, 49_152]


def logits_of(values: NDArray[np.float64] | list[float]) -> F32:
    return np.array(values, np.float32).reshape(1, -1)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("vocab", SIZES)
def test_argmax_of_equals_is_the_lowest_id(vocab: int, isa: str) -> None:
    ops, cpu = native(isa)
    rng = np.random.default_rng(vocab)
    for _ in range(20):
        z = rng.integers(-3, 3, (2, vocab + 5)).astype(np.float32)
        z[:, vocab:] = 99  # padding rows of the head are never the best
        rows = filled(ops, z)
        for row in (0, 1):
            assert cpu.argmax(rows, row, vocab) == int(np.argmax(z[row, :vocab]))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("vocab", [1, 15, 16, 17, 40])
def test_nan_never_wins(vocab: int, isa: str) -> None:
    rng = np.random.default_rng(vocab)
    for _ in range(50):
        z = rng.integers(-2, 2, (1, vocab)).astype(np.float32)
        z[rng.random(z.shape) < 0.3] = np.nan
        z[rng.random(z.shape) < 0.3] = -np.inf
        (ops, cpu), (twin_ops, twin_cpu) = native(isa), twin()
        rows, twin_rows = filled(ops, z), filled(twin_ops, z)
        assert cpu.argmax(rows, 0, vocab) == twin_cpu.argmax(twin_rows, 0, vocab)
        assert_same_bits(cpu.top(rows, 0, vocab, 5), twin_cpu.top(twin_rows, 0, vocab, 5))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("worst", [np.nan, -np.inf])
def test_nothing_finite_gives_no_best(isa: str, worst: float) -> None:
    ops, cpu = native(isa)
    rows = filled(ops, logits_of([worst] * 20))
    assert cpu.argmax(rows, 0, 20) == -1
    with pytest.raises(ValueError, match="finite"):
        cpu.softmax_weights(rows, 0, 20, 1.0)
    assert len(cpu.top(rows, 0, 20, 5)) == (0 if np.isnan(worst) else 5)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("vocab", SIZES)
def test_top_is_ordered_by_logit_then_id(vocab: int, isa: str) -> None:
    ops, cpu = native(isa)
    rng = np.random.default_rng(vocab)
    for spread in (2, 1000):
        z = rng.integers(-spread, spread, (1, vocab)).astype(np.float32)
        wanted = np.lexsort((np.arange(vocab), -z[0])).astype(np.int32)
        for num in (1, 2, 20, vocab, vocab + 100):
            assert_same_bits(cpu.top(filled(ops, z), 0, vocab, num), wanted[:num])


def test_top_leaves_out_padding() -> None:
    ops, cpu = native(ISAS[0])
    assert cpu.top(filled(ops, logits_of([1, 3, 2, 9])), 0, 3, 9).tolist() == [1, 2, 0]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("vocab", SIZES)
@pytest.mark.parametrize("temperature", [1e-30, 0.05, 1.0, 3.7, 1e30, np.inf])
def test_softmax_weights(temperature: float, vocab: int, isa: str) -> None:
    z = np.random.default_rng(vocab).standard_normal((2, vocab + 3)).astype(np.float32) * np.float32(9)
    z[0, ::7] = -np.inf
    z[0, vocab // 2] = 5
    found = []
    for ops, cpu in (native(isa), twin()):
        weights, total = cpu.softmax_weights(filled(ops, z), 0, vocab, temperature)
        found.append((weights, np.array([total], np.float64)))
    assert_same_bits(found[0][0], found[1][0])
    assert_same_bits(found[0][1], found[1][1])


@pytest.mark.parametrize("isa", ISAS)
def test_exp_over_its_whole_range(isa: str) -> None:
    """Every 5,917th float32 from -0 to -inf, in bits, and within 1.5 units in the last place of the truth."""
    bits = np.arange(0x8000_0000, 0xFF80_0001, 5917, dtype=np.uint32)
    dense = np.arange(0xC2AE_0000, 0xC2AF_0000, 7, dtype=np.uint32)  # around -87.33654, where it stops
    x = np.concatenate([np.zeros(1, np.uint32), bits, dense, [np.uint32(0xFF80_0000)]]).view(np.float32)
    results = []
    for ops, cpu in (native(isa), twin()):
        results.append(cpu.softmax_weights(filled(ops, x[None]), 0, len(x), 1.0)[0])
    assert_same_bits(*results)
    is_kept = x >= np.float32(-87.33654)
    truth = np.exp(x[is_kept].astype(np.float64))
    error = np.abs(results[0][is_kept] - truth) / np.spacing(truth.astype(np.float32))
    assert error.max() < 1.5
    assert (results[0][~is_kept] == 0).all()


def test_infinity_cannot_be_chosen() -> None:
    for ops, cpu in (native(ISAS[0]), twin()):
        rows = filled(ops, logits_of([1, np.inf, 2]))
        assert cpu.argmax(rows, 0, 3) == -1
        with pytest.raises(ValueError, match="finite"):
            cpu.softmax_weights(rows, 0, 3, 1.0)


@given(
    st.lists(
        st.sampled_from([0.0, -0.0, 1.0, 2.5, -7.0, float("nan"), float("-inf")]), min_size=1, max_size=80
    ),
    st.integers(1, 90),
)
@settings(max_examples=100, deadline=None)
def test_any_logits(values: list[float], num: int) -> None:
    z = logits_of(values)
    ops, cpu = twin()
    wanted = cpu.argmax(filled(ops, z), 0, z.size), cpu.top(filled(ops, z), 0, z.size, num)
    for isa in ISAS:
        ops, cpu = native(isa)
        assert cpu.argmax(filled(ops, z), 0, z.size) == wanted[0]
        assert_same_bits(cpu.top(filled(ops, z), 0, z.size, num), wanted[1])


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("vocab", SIZES)
def test_survey_equals_the_twin_and_what_it_says(vocab: int, isa: str) -> None:
    ops, cpu = native(isa)
    twin_ops, twin_cpu = twin()
    rng = np.random.default_rng(vocab)
    z = rng.normal(0, 4, (1, vocab)).astype(np.float32)
    z[0, rng.integers(vocab)] = z[0, rng.integers(vocab)]  # a tie, perhaps
    if vocab > 3:
        z[0, 1], z[0, 2] = -np.inf, np.nan
    for token, num in {(0, 5), (vocab // 2, 0), (vocab - 1, 3)}:
        told = cpu.survey(filled(ops, z), 0, vocab, token, num)
        assert told == twin_cpu.survey(filled(twin_ops, z), 0, vocab, token, num)
        finite = z[0][np.isfinite(z[0])].astype(np.float64)
        p = np.exp(finite - finite.max())
        assert told[:2] == (finite.max(), pytest.approx(p.sum(), rel=1e-5))
        assert told[2] == pytest.approx((p * (finite - finite.max())).sum(), rel=1e-4, abs=1e-6)
        assert told[3] == sum(x > z[0, token] for x in z[0]) + sum(x == z[0, token] for x in z[0, :token])
