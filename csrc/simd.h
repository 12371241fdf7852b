// Sixteen lanes on every instruction set.
//
// One lane is one output, one key or one virtual lane of a sum, so the same source gives the same bits everywhere: each
// function is defined lane by lane, with IEEE rounding. simd_plain.h says what each one means; the other files say it
// in intrinsics, and no file but they has any. The build defines which one by TG_ISA_AVX512VNNI, TG_ISA_AVX512,
// TG_ISA_AVXVNNI, TG_ISA_AVX2 or TG_ISA_NEON; none of them is plain C++.
//
// Two functions are worth their words. Both add to `acc` the sum over the four bytes of each lane of w * x, where `x`
// points to four int8 activations (-127..127), the same for every lane:
//
//   dot_nibbles  w holds 0..15: no instruction set can saturate.
//   dot_bytes    w holds stored bytes w + 128 (0..255). Where an instruction multiplies unsigned by signed bytes into
//                int32, it takes them as they are and leaves kBytesBias * sum(x) to the caller. Where it would add
//                pairs in int16, 255 * 127 * 2 would saturate, so |w| is multiplied by x with w's sign: at most
//                128 * 127 * 2 = 32512.
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>

namespace {

// Loaded straight into a vector: by way of an integer register it would cost as much as the product.
typedef int32_t __attribute__((may_alias)) any_int32;
inline int32_t four_bytes(const int8_t* x) { return *(const any_int32*)x; }

}  // namespace

#if defined(TG_ISA_AVX512VNNI)
#define TG_ISA_AVX512
#elif defined(TG_ISA_AVXVNNI)
#define TG_ISA_AVX2
#endif
#if defined(TG_ISA_AVX512)
#include "simd_avx512.h"
#elif defined(TG_ISA_AVX2)
#include "simd_avx2.h"
#elif defined(TG_ISA_NEON)
#include "simd_neon.h"
#else
#include "simd_plain.h"
#endif

namespace {

// The first n (at most 16) floats; the other lanes are 0 and stay unwritten.
inline f32x16 load_first(const float* p, int n) {
    if (n >= 16) return f_load(p);
    float v[16] = {0};
    memcpy(v, p, (size_t)n * 4);
    return f_load(v);
}
inline void store_first(float* p, f32x16 a, int n) {
    if (n >= 16) return f_store(p, a);
    float v[16];
    f_store(v, a);
    memcpy(p, v, (size_t)n * 4);
}

// Sum of 16 lanes by one fixed tree: i with i+8, then +4, +2, +1.
#if !defined(TG_ISA_AVX512) && !defined(TG_ISA_AVX2)
inline float f_sum(f32x16 a) {
    float v[16];
    f_store(v, a);
    for (int step = 8; step; step /= 2)
        for (int i = 0; i < step; i++) v[i] += v[i + step];
    return v[0];
}
#endif
inline float f_largest(f32x16 a) {
    float v[16];
    f_store(v, a);
    float m = v[0];
    for (int i = 1; i < 16; i++) m = v[i] > m ? v[i] : m;
    return m;
}

// e^x = 2^n e^r with a whole n and |r| <= ln 2 / 2. Gives 2^n, r, and q of e^r = 1 + r + r^2 q (Cephes' expf).
inline f32x16 exp_parts(f32x16 x, f32x16* r, f32x16* q) {
    const f32x16 n = f_round(f_mul(x, f_set(1.44269504088896341f)));
    *r = f_fma(n, f_set(-0.693359375f), x);
    *r = f_fma(n, f_set(2.12194440e-4f), *r);
    f32x16 p = f_set(1.9875691500e-4f);
    p = f_fma(p, *r, f_set(1.3981999507e-3f));
    p = f_fma(p, *r, f_set(8.3334519073e-3f));
    p = f_fma(p, *r, f_set(4.1665795894e-2f));
    p = f_fma(p, *r, f_set(1.6666665459e-1f));
    *q = f_fma(p, *r, f_set(5.0000001201e-1f));
    return f_power_of_two(f_to_int(n));
}

// e^x to about 1 ulp; below -87.33 exactly 0.
inline f32x16 f_exp(f32x16 x) {
    f32x16 r, q;
    const f32x16 power = exp_parts(f_min(f_max(x, f_set(-87.33654f)), f_set(88.0f)), &r, &q);
    return f_zero_below(f_mul(f_fma(q, f_mul(r, r), f_add(r, f_set(1.0f))), power), x, -87.33654f);
}

// tanh x = e / (e + 2), e = e^2x - 1 without the loss of subtracting from a rounded e^2x: 2^n (e^r - 1) + (2^n - 1).
// To 4 ulp; NaN stays NaN.
inline f32x16 f_tanh(f32x16 x) {
    f32x16 r, q;
    const f32x16 power = exp_parts(f_min(f_set(30.0f), f_max(f_set(-30.0f), f_add(x, x))), &r, &q);
    const f32x16 e = f_fma(f_fma(q, f_mul(r, r), r), power, f_sub(power, f_set(1.0f)));
    return f_div(e, f_add(e, f_set(2.0f)));
}

}  // namespace
