"""The arithmetic under `reference.py`: fused multiply-add, e^x, sums in lanes, int8 activations.

Everything is float32 with IEEE rounding in the order of csrc/simd.h and csrc/matmul.h, so numpy gives the
bits that the C++ gives on every instruction set (docs/en/numerics.md). Arguments broadcast like any numpy
arrays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
LANES = 16  # outputs in a panel, keys in a page, virtual lanes of every sum
GROUP = 32  # columns that share one scale


def f32(x: float) -> F32:
    """A float32 constant."""
    return np.asarray(x, dtype=np.float32)


def fma(a: F32, b: F32, c: F32) -> F32:
    """a * b + c with one rounding, as the processor's instruction.

    In words: the product of two float32 fits a float64; the sum is rounded to float64, then to float32. The
    second rounding can only go wrong where the float64 lies half way between two float32 (its last 28 bits
    are 0) and the first one hid on which side the true sum is. There the float64 moves by its last bit
    towards what it lost.
    """
    with np.errstate(all="ignore"):
        product = np.multiply(a, b, dtype=np.float64)
        total = np.asarray(product + c)
        in_doubt = total.view(np.int64) & 0x0FFF_FFFF == 0
        if in_doubt.any():
            t = total[in_doubt]
            p = np.broadcast_to(product, total.shape)[in_doubt]
            part = t - p
            lost = (p - (t - part)) + (
                np.broadcast_to(c, total.shape)[in_doubt] - part
            )  # p + c = t + lost exactly
            is_lost = np.isfinite(lost) & (lost != 0)
            total[in_doubt] = np.where(is_lost, np.nextafter(t, np.copysign(np.inf, lost)), t)
        return total.astype(np.float32)


def larger(a: F32, b: F32) -> F32:
    """a where a > b, else b: the second one where either is NaN, like the instruction."""
    return np.where(a > b, a, b)


def exp_parts(x: F32) -> tuple[F32, F32, F32]:
    """2^n, r and q of e^x = 2^n (1 + r + r^2 q), with a whole n and |r| <= ln 2 / 2 (Cephes' expf).

    ln 2 is taken off in two parts, the first so short that n * part is exact.
    """
    n = np.rint(x * f32(1.44269504088896341))
    r = fma(n, f32(-0.693359375), x)
    r = fma(n, f32(2.12194440e-4), r)
    q = f32(1.9875691500e-4)
    for coefficient in (1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1):
        q = fma(q, r, f32(coefficient))
    with np.errstate(invalid="ignore"):
        return np.ldexp(f32(1), n.astype(np.int32)), r, q


def exp(x: F32) -> F32:
    """e^x to about 1 ulp; exactly 0 below -87.33654 and for NaN, e^88 above 88."""
    lowest = f32(-87.33654)
    power, r, q = exp_parts(np.minimum(larger(x, lowest), f32(88)))
    return np.where(x >= lowest, fma(q, r * r, r + f32(1)) * power, f32(0))


def tanh(x: F32) -> F32:
    """tanh x = e / (e + 2) with e = e^2x - 1 = 2^n (e^r - 1) + (2^n - 1), to 4 ulp; NaN stays NaN."""
    power, r, q = exp_parts(np.minimum(larger(f32(-30), x + x), f32(30)))
    e = fma(fma(q, r * r, r), power, power - f32(1))
    return e / (e + f32(2))


def in_lanes(x: F32) -> F32:
    """The last axis as vectors of 16 lanes, filled up with zeros: [..., n] -> [..., ceil(n / 16), 16]."""
    missing = -x.shape[-1] % LANES
    padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)])
    return padded.reshape(*x.shape[:-1], -1, LANES)


def tree_sum(x: F32) -> F32:
    """Sum of 16 lanes by one fixed tree, lane i with i + 8, then + 4, + 2, + 1: [..., 16] -> [...]."""
    for step in (8, 4, 2, 1):
        x = x[..., :step] + x[..., step : 2 * step]
    return x[..., 0]


def lane_sum(x: F32) -> F32:
    """Sum over the last axis: number i goes to lane i % 16, lanes add in order, the tree joins them."""
    vectors = in_lanes(x)
    total = np.zeros_like(vectors[..., 0, :])
    for i in range(vectors.shape[-2]):
        total = total + vectors[..., i, :]
    return tree_sum(total)


def sum_of_products(x: F32, y: F32) -> F32:
    """Of the last axis, in the order of `lane_sum`, each product added by a fused multiply-add."""
    a, b = in_lanes(x), in_lanes(y)
    total = np.zeros_like(a[..., 0, :])
    for i in range(a.shape[-2]):
        total = fma(a[..., i, :], b[..., i, :], total)
    return tree_sum(total)


def quantise(x: F32) -> tuple[NDArray[np.int8], F32, NDArray[np.int32]]:
    """x [rows, cols] ~= (q + zero) * scale: q int8 [rows, groups, 32], scale and zero [rows, groups].

    In words: scale = max|x| / 127 in a group of 32 columns, zero = 0, q = x / scale to nearest, ties to even.
    Where one side reaches more than three times as far as the other, q reaches from the smallest to the
    largest instead: scale = (high - low) / 254, zero is the middle. A group of zeros is zeros, and so is one
    with a scale below the normal numbers or with NaN or infinity (its scale says so). q is never -128, for
    -q must be an int8, too.
    """
    groups = x.reshape(len(x), -1, GROUP)
    half = f32(0.5)
    with np.errstate(all="ignore"):
        high, low = np.maximum(groups.max(axis=-1), f32(0)), np.minimum(groups.min(axis=-1), f32(0))
        far, near = np.where(high > -low, high, -low), np.where(high > -low, -low, high)
        is_one_sided = ~(far <= f32(3) * near)  # with NaN too, which the sum below then carries on
        scale = np.where(is_one_sided, half * far + half * near, far) / f32(127)
        inverse = f32(1) / scale
        is_plain = (scale >= np.finfo(np.float32).tiny) & (scale < np.inf)
        middle = np.rint((half * high + half * low) * inverse)
        zero = np.where(is_plain & is_one_sided, middle, f32(0))
        steps = np.clip(fma(groups, inverse[..., None], -zero[..., None]), f32(-127), f32(127))
        q = np.where(is_plain[..., None], np.rint(steps), f32(0))
    return q.astype(np.int8), scale, zero.astype(np.int32)


def sine_cosine(angle: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sine and cosine: quarter turns taken off in two steps, then the Taylor series on [-pi/4, pi/4]."""
    k = np.rint(angle * 0.63661977236758134308)
    r = angle - k * 1.57079632673412561417e00
    r = r - k * 6.07710050650619224932e-11
    z = r * r
    s = np.ones_like(z)
    c = np.ones_like(z)
    for n in range(9, 0, -1):
        s = 1.0 - s * (z * (1.0 / (2 * n * (2 * n + 1))))
        c = 1.0 - c * (z * (1.0 / (2 * n * (2 * n - 1))))
    s = s * r
    quarter = k.astype(np.int64) & 3
    return np.choose(quarter, [s, c, -s, -c]), np.choose(quarter, [c, -s, -c, s])
