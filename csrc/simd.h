// Sixteen lanes on every instruction set: the only file with intrinsics.
//
// One lane is one output, one key or one virtual lane of a sum, so the same source gives the same bits everywhere: each
// function below is defined lane by lane, with IEEE rounding, and the plain version next to the intrinsics says what it
// means. TG_ISA_AVX512VNNI, TG_ISA_AVX512 or TG_ISA_AVX2 is defined by the build for the unit being compiled; none of
// them is plain C++.
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(TG_ISA_AVX512VNNI)
#define TG_ISA_AVX512
#endif
#if defined(TG_ISA_AVX512) || defined(TG_ISA_AVX2)
#include <immintrin.h>
#endif

namespace {

typedef int32_t __attribute__((may_alias)) any_int32;  // four bytes of another type, read as one number

#if defined(TG_ISA_AVX512)
using f32x16 = __m512;
using i32x16 = __m512i;
inline f32x16 f_set(float x) { return _mm512_set1_ps(x); }
inline f32x16 f_load(const float* p) { return _mm512_loadu_ps(p); }
inline void f_store(float* p, f32x16 a) { _mm512_storeu_ps(p, a); }
inline f32x16 f_add(f32x16 a, f32x16 b) { return _mm512_add_ps(a, b); }
inline f32x16 f_sub(f32x16 a, f32x16 b) { return _mm512_sub_ps(a, b); }
inline f32x16 f_mul(f32x16 a, f32x16 b) { return _mm512_mul_ps(a, b); }
inline f32x16 f_div(f32x16 a, f32x16 b) { return _mm512_div_ps(a, b); }
inline f32x16 f_max(f32x16 a, f32x16 b) { return _mm512_max_ps(a, b); }
inline f32x16 f_min(f32x16 a, f32x16 b) { return _mm512_min_ps(a, b); }
inline f32x16 f_fma(f32x16 a, f32x16 b, f32x16 c) { return _mm512_fmadd_ps(a, b, c); }
inline f32x16 f_abs(f32x16 a) { return _mm512_abs_ps(a); }
inline f32x16 f_round(f32x16 a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline f32x16 f_zero_below(f32x16 a, f32x16 x, float limit) {  // a where x >= limit, else 0
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(limit), _CMP_GE_OQ), a);
}
inline f32x16 f_keep_first(f32x16 a, int n, float rest) {  // lanes >= n become `rest`
    return _mm512_mask_mov_ps(_mm512_set1_ps(rest), (__mmask16)((1u << n) - 1), a);
}
inline int f_count_greater(f32x16 a, f32x16 b) { return __builtin_popcount(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ)); }
inline f32x16 f_load_half(const uint16_t* p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p)); }
inline void f_store_half(uint16_t* p, f32x16 a) { _mm256_storeu_si256((__m256i*)p, _mm512_cvtps_ph(a, 0)); }
inline i32x16 i_set(int32_t x) { return _mm512_set1_epi32(x); }
inline i32x16 i_load(const void* p) { return _mm512_loadu_si512(p); }
inline i32x16 i_add(i32x16 a, i32x16 b) { return _mm512_add_epi32(a, b); }
inline i32x16 i_and(i32x16 a, i32x16 b) { return _mm512_and_si512(a, b); }
inline i32x16 i_shift_right(i32x16 a, int n) { return _mm512_srl_epi32(a, _mm_cvtsi32_si128(n)); }
inline i32x16 i_shift_left(i32x16 a, int n) { return _mm512_sll_epi32(a, _mm_cvtsi32_si128(n)); }
inline i32x16 i_sub(i32x16 a, i32x16 b) { return _mm512_sub_epi32(a, b); }
inline f32x16 i_to_float(i32x16 a) { return _mm512_cvtepi32_ps(a); }
inline i32x16 f_to_int(f32x16 a) { return _mm512_cvtps_epi32(a); }
inline f32x16 f_power_of_two(i32x16 n) {  // 2^n for -126 <= n <= 127
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(n, _mm512_set1_epi32(127)), 23));
}
inline void i_store_int8(int8_t* p, i32x16 a) { _mm_storeu_si128((__m128i*)p, _mm512_cvtsepi32_epi8(a)); }

#elif defined(TG_ISA_AVX2)
struct f32x16 {
    __m256 a, b;
};
struct i32x16 {
    __m256i a, b;
};
inline f32x16 f_set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline f32x16 f_load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void f_store(float* p, f32x16 x) { _mm256_storeu_ps(p, x.a), _mm256_storeu_ps(p + 8, x.b); }
inline f32x16 f_add(f32x16 x, f32x16 y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
inline f32x16 f_sub(f32x16 x, f32x16 y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
inline f32x16 f_mul(f32x16 x, f32x16 y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
inline f32x16 f_div(f32x16 x, f32x16 y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
inline f32x16 f_max(f32x16 x, f32x16 y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
inline f32x16 f_min(f32x16 x, f32x16 y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
inline f32x16 f_fma(f32x16 x, f32x16 y, f32x16 z) {
    return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
inline f32x16 f_abs(f32x16 x) {
    __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b)};
}
inline f32x16 f_round(f32x16 x) {
    return {_mm256_round_ps(x.a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
            _mm256_round_ps(x.b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline f32x16 f_zero_below(f32x16 v, f32x16 x, float limit) {
    __m256 l = _mm256_set1_ps(limit);
    return {_mm256_and_ps(v.a, _mm256_cmp_ps(x.a, l, _CMP_GE_OQ)),
            _mm256_and_ps(v.b, _mm256_cmp_ps(x.b, l, _CMP_GE_OQ))};
}
inline f32x16 f_keep_first(f32x16 x, int n, float rest) {
    __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), num = _mm256_set1_epi32(n);
    __m256 r = _mm256_set1_ps(rest);
    __m256i low = _mm256_cmpgt_epi32(num, lane),
            high = _mm256_cmpgt_epi32(num, _mm256_add_epi32(lane, _mm256_set1_epi32(8)));
    return {_mm256_blendv_ps(r, x.a, _mm256_castsi256_ps(low)), _mm256_blendv_ps(r, x.b, _mm256_castsi256_ps(high))};
}
inline int f_count_greater(f32x16 x, f32x16 y) {
    return __builtin_popcount(_mm256_movemask_ps(_mm256_cmp_ps(x.a, y.a, _CMP_GT_OQ))) +
           __builtin_popcount(_mm256_movemask_ps(_mm256_cmp_ps(x.b, y.b, _CMP_GT_OQ)));
}
inline f32x16 f_load_half(const uint16_t* p) {
    return {_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p)),
            _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(p + 8)))};
}
inline void f_store_half(uint16_t* p, f32x16 x) {
    _mm_storeu_si128((__m128i*)p, _mm256_cvtps_ph(x.a, 0)),
        _mm_storeu_si128((__m128i*)(p + 8), _mm256_cvtps_ph(x.b, 0));
}
inline i32x16 i_set(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
inline i32x16 i_load(const void* p) {
    return {_mm256_loadu_si256((const __m256i*)p), _mm256_loadu_si256((const __m256i*)p + 1)};
}
inline i32x16 i_add(i32x16 x, i32x16 y) { return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)}; }
inline i32x16 i_and(i32x16 x, i32x16 y) { return {_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)}; }
inline i32x16 i_shift_right(i32x16 x, int n) {
    __m128i c = _mm_cvtsi32_si128(n);
    return {_mm256_srl_epi32(x.a, c), _mm256_srl_epi32(x.b, c)};
}
inline i32x16 i_shift_left(i32x16 x, int n) {
    __m128i c = _mm_cvtsi32_si128(n);
    return {_mm256_sll_epi32(x.a, c), _mm256_sll_epi32(x.b, c)};
}
inline i32x16 i_sub(i32x16 x, i32x16 y) { return {_mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b)}; }
inline f32x16 i_to_float(i32x16 x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
inline i32x16 f_to_int(f32x16 x) { return {_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)}; }
inline f32x16 f_power_of_two(i32x16 n) {
    __m256i bias = _mm256_set1_epi32(127);
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n.a, bias), 23)),
            _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n.b, bias), 23))};
}
inline void i_store_int8(int8_t* p, i32x16 x) {
    __m256i w = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xD8);
    _mm_storeu_si128((__m128i*)p, _mm_packs_epi16(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1)));
}

#else  // plain C++
struct f32x16 {
    float v[16];
};
struct i32x16 {
    int32_t v[16];
};
#define TG_EACH for (int l = 0; l < 16; l++)
inline f32x16 f_set(float x) {
    f32x16 r;
    TG_EACH r.v[l] = x;
    return r;
}
inline f32x16 f_load(const float* p) {
    f32x16 r;
    memcpy(r.v, p, 64);
    return r;
}
inline void f_store(float* p, f32x16 a) { memcpy(p, a.v, 64); }
inline f32x16 f_add(f32x16 a, f32x16 b) {
    TG_EACH a.v[l] += b.v[l];
    return a;
}
inline f32x16 f_sub(f32x16 a, f32x16 b) {
    TG_EACH a.v[l] -= b.v[l];
    return a;
}
inline f32x16 f_mul(f32x16 a, f32x16 b) {
    TG_EACH a.v[l] *= b.v[l];
    return a;
}
inline f32x16 f_div(f32x16 a, f32x16 b) {
    TG_EACH a.v[l] /= b.v[l];
    return a;
}
inline f32x16 f_max(f32x16 a, f32x16 b) {
    TG_EACH a.v[l] = a.v[l] > b.v[l] ? a.v[l] : b.v[l];
    return a;
}
inline f32x16 f_min(f32x16 a, f32x16 b) {
    TG_EACH a.v[l] = a.v[l] < b.v[l] ? a.v[l] : b.v[l];
    return a;
}
inline f32x16 f_fma(f32x16 a, f32x16 b, f32x16 c) {
    TG_EACH c.v[l] = fmaf(a.v[l], b.v[l], c.v[l]);
    return c;
}
inline f32x16 f_abs(f32x16 a) {
    TG_EACH a.v[l] = fabsf(a.v[l]);
    return a;
}
inline f32x16 f_round(f32x16 a) {
    TG_EACH a.v[l] = nearbyintf(a.v[l]);
    return a;
}
inline f32x16 f_zero_below(f32x16 a, f32x16 x, float limit) {
    TG_EACH a.v[l] = x.v[l] >= limit ? a.v[l] : 0.0f;
    return a;
}
inline f32x16 f_keep_first(f32x16 a, int n, float rest) {
    for (int l = n; l < 16; l++) a.v[l] = rest;
    return a;
}
inline int f_count_greater(f32x16 a, f32x16 b) {
    int count = 0;
    TG_EACH count += a.v[l] > b.v[l];
    return count;
}
inline float half_to_float(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = (h >> 10) & 31, mantissa = h & 0x3ff, bits;
    float r;
    if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, exact
        r = (float)mantissa * 5.9604644775390625e-8f;
        memcpy(&bits, &r, 4);
        bits |= sign;
    } else {
        bits = sign | (exponent == 31 ? 0x7f800000u | mantissa << 13 : (exponent + 112) << 23 | mantissa << 13);
    }
    memcpy(&r, &bits, 4);
    return r;
}
inline uint16_t float_to_half(float x) {  // round to nearest, ties to even
    uint32_t bits;
    memcpy(&bits, &x, 4);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return sign | 0x7e00 | (uint16_t)(magnitude >> 13 & 0x1ff);
    if (magnitude >= 0x47800000) return sign | 0x7c00;
    if (magnitude < 0x38800000) {  // subnormal: the value in units of 2^-24, rounded by the float adder
        float m, half = 0.5f;
        memcpy(&m, &magnitude, 4);
        m += half;
        uint32_t r, h;
        memcpy(&r, &m, 4), memcpy(&h, &half, 4);
        return sign | (uint16_t)(r - h);
    }
    uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return sign | (uint16_t)((rounded - 0x38000000) >> 13);
}
inline f32x16 f_load_half(const uint16_t* p) {
    f32x16 r;
    TG_EACH r.v[l] = half_to_float(p[l]);
    return r;
}
inline void f_store_half(uint16_t* p, f32x16 a) { TG_EACH p[l] = float_to_half(a.v[l]); }
inline i32x16 i_set(int32_t x) {
    i32x16 r;
    TG_EACH r.v[l] = x;
    return r;
}
inline i32x16 i_load(const void* p) {
    i32x16 r;
    memcpy(r.v, p, 64);
    return r;
}
inline i32x16 i_add(i32x16 a, i32x16 b) {
    TG_EACH a.v[l] = (int32_t)((uint32_t)a.v[l] + (uint32_t)b.v[l]);
    return a;
}
inline i32x16 i_and(i32x16 a, i32x16 b) {
    TG_EACH a.v[l] &= b.v[l];
    return a;
}
inline i32x16 i_shift_right(i32x16 a, int n) {
    TG_EACH a.v[l] = (int32_t)((uint32_t)a.v[l] >> n);
    return a;
}
inline i32x16 i_shift_left(i32x16 a, int n) {
    TG_EACH a.v[l] = (int32_t)((uint32_t)a.v[l] << n);
    return a;
}
inline i32x16 i_sub(i32x16 a, i32x16 b) {
    TG_EACH a.v[l] = (int32_t)((uint32_t)a.v[l] - (uint32_t)b.v[l]);
    return a;
}
inline f32x16 i_to_float(i32x16 a) {
    f32x16 r;
    TG_EACH r.v[l] = (float)a.v[l];
    return r;
}
inline i32x16 f_to_int(f32x16 a) {  // ties to even; out of range and NaN give INT32_MIN, as the instruction does
    i32x16 r;
    TG_EACH {
        float x = nearbyintf(a.v[l]);
        r.v[l] = x >= -2147483648.0f && x < 2147483648.0f ? (int32_t)x : INT32_MIN;
    }
    return r;
}
inline f32x16 f_power_of_two(i32x16 n) {
    f32x16 r;
    TG_EACH {
        uint32_t bits = ((uint32_t)n.v[l] + 127) << 23;
        memcpy(&r.v[l], &bits, 4);
    }
    return r;
}
inline void i_store_int8(int8_t* p, i32x16 a) {  // saturating
    TG_EACH p[l] = (int8_t)(a.v[l] > 127 ? 127 : a.v[l] < -128 ? -128 : a.v[l]);
}
#endif

// acc + sum over the four bytes of each lane of w * x: `x` points to four int8 activations, the same for every lane
// (loaded straight into a vector: by way of an integer register it would cost as much as the product). w holds nibbles
// (0..15): no instruction set can saturate.
inline i32x16 dot_nibbles(i32x16 acc, i32x16 w, const int8_t* x) {
    const int32_t x4 = *(const any_int32*)x;
#if defined(TG_ISA_AVX512VNNI)
    return _mm512_dpbusd_epi32(acc, w, _mm512_set1_epi32(x4));
#elif defined(TG_ISA_AVX512)
    return _mm512_add_epi32(acc,
                            _mm512_madd_epi16(_mm512_maddubs_epi16(w, _mm512_set1_epi32(x4)), _mm512_set1_epi16(1)));
#elif defined(TG_ISA_AVX2)
    __m256i v = _mm256_set1_epi32(x4), one = _mm256_set1_epi16(1);
    return {_mm256_add_epi32(acc.a, _mm256_madd_epi16(_mm256_maddubs_epi16(w.a, v), one)),
            _mm256_add_epi32(acc.b, _mm256_madd_epi16(_mm256_maddubs_epi16(w.b, v), one))};
#else
    TG_EACH for (int b = 0; b < 4; b++) {
        acc.v[l] += (int32_t)(uint8_t)((uint32_t)w.v[l] >> (8 * b)) * (int8_t)((uint32_t)x4 >> (8 * b));
    }
    return acc;
#endif
}

// The same for stored bytes w + 128 (0..255). VNNI multiplies the stored bytes and the caller removes 128 * sum(x) in
// int32; elsewhere 255 * 127 * 2 would saturate, so |w| and x with w's sign are multiplied: at most 128 * 127 * 2 =
// 32512.
inline i32x16 dot_bytes(i32x16 acc, i32x16 w, const int8_t* x) {
    const int32_t x4 = *(const any_int32*)x;
#if defined(TG_ISA_AVX512VNNI)
    return _mm512_dpbusd_epi32(acc, w, _mm512_set1_epi32(x4));
#elif defined(TG_ISA_AVX512)
    __m512i s = _mm512_xor_si512(w, _mm512_set1_epi8((char)0x80)), v = _mm512_set1_epi32(x4);
    __m512i signed_x = _mm512_mask_sub_epi8(v, _mm512_movepi8_mask(s), _mm512_setzero_si512(), v);
    return _mm512_add_epi32(
        acc, _mm512_madd_epi16(_mm512_maddubs_epi16(_mm512_abs_epi8(s), signed_x), _mm512_set1_epi16(1)));
#elif defined(TG_ISA_AVX2)
    __m256i flip = _mm256_set1_epi8((char)0x80), v = _mm256_set1_epi32(x4), one = _mm256_set1_epi16(1);
    __m256i a = _mm256_xor_si256(w.a, flip), b = _mm256_xor_si256(w.b, flip);
    return {_mm256_add_epi32(acc.a,
                             _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_abs_epi8(a), _mm256_sign_epi8(v, a)), one)),
            _mm256_add_epi32(acc.b,
                             _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_abs_epi8(b), _mm256_sign_epi8(v, b)), one))};
#else
    TG_EACH for (int b = 0; b < 4; b++) {
        acc.v[l] += ((int32_t)(uint8_t)((uint32_t)w.v[l] >> (8 * b)) - 128) * (int8_t)((uint32_t)x4 >> (8 * b));
    }
    return acc;
#endif
}
#if defined(TG_ISA_AVX512VNNI)
constexpr int kBytesBias = 7;  // dot_bytes leaves 2^7 * sum(x) to the caller
#else
constexpr int kBytesBias = 0;
#endif

// Sum of 16 lanes by one fixed tree: i with i+8, then +4, +2, +1.
inline float f_sum(f32x16 a) {
    float v[16];
    f_store(v, a);
    for (int step = 8; step; step /= 2)
        for (int i = 0; i < step; i++) v[i] += v[i + step];
    return v[0];
}
inline float f_largest(f32x16 a) {
    float v[16];
    f_store(v, a);
    float m = v[0];
    for (int i = 1; i < 16; i++) m = v[i] > m ? v[i] : m;
    return m;
}

// e^x to about 1 ulp (Cephes' expf: x = n ln 2 + r, a polynomial in r, scaled by 2^n); below -87.33 exactly 0.
inline f32x16 f_exp(f32x16 x) {
    f32x16 c = f_min(f_max(x, f_set(-87.33654f)), f_set(88.0f));
    f32x16 n = f_round(f_mul(c, f_set(1.44269504088896341f)));
    f32x16 r = f_fma(n, f_set(-0.693359375f), c);
    r = f_fma(n, f_set(2.12194440e-4f), r);
    f32x16 p = f_set(1.9875691500e-4f);
    p = f_fma(p, r, f_set(1.3981999507e-3f));
    p = f_fma(p, r, f_set(8.3334519073e-3f));
    p = f_fma(p, r, f_set(4.1665795894e-2f));
    p = f_fma(p, r, f_set(1.6666665459e-1f));
    p = f_fma(p, r, f_set(5.0000001201e-1f));
    p = f_fma(p, f_mul(r, r), f_add(r, f_set(1.0f)));
    return f_zero_below(f_mul(p, f_power_of_two(f_to_int(n))), x, -87.33654f);
}

}  // namespace
