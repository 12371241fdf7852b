// simd.h's lanes as two AVX2 registers. With TG_ISA_AVXVNNI a product of bytes is one instruction.
#pragma once
#include <immintrin.h>
#include <stdint.h>

namespace {

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
inline __m256 load_8_bfloats(const uint16_t* p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p)), 16));
}
inline f32x16 f_load_bfloat(const uint16_t* p) { return {load_8_bfloats(p), load_8_bfloats(p + 8)}; }
inline i32x16 i_set(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
inline i32x16 i_load(const void* p) {
    return {_mm256_loadu_si256((const __m256i*)p), _mm256_loadu_si256((const __m256i*)p + 1)};
}
inline i32x16 i_add(i32x16 x, i32x16 y) { return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)}; }
inline i32x16 i_or(i32x16 x, i32x16 y) { return {_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)}; }
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
inline i32x16 i_mul(i32x16 x, i32x16 y) { return {_mm256_mullo_epi32(x.a, y.a), _mm256_mullo_epi32(x.b, y.b)}; }
inline i32x16 i_mul_pairs(i32x16 x, i32x16 y) { return {_mm256_madd_epi16(x.a, y.a), _mm256_madd_epi16(x.b, y.b)}; }
inline i32x16 i_lookup(const uint8_t* table, i32x16 x) {
    __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i*)table));
    return {_mm256_shuffle_epi8(t, x.a), _mm256_shuffle_epi8(t, x.b)};
}
inline f32x16 i_to_float(i32x16 x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
inline i32x16 f_to_int(f32x16 x) { return {_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)}; }
inline f32x16 f_power_of_two(i32x16 n) {
    __m256i bias = _mm256_set1_epi32(127);
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n.a, bias), 23)),
            _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n.b, bias), 23))};
}
inline i32x16 i_load_int8(const int8_t* p) {
    return {_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)p)),
            _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)(p + 8)))};
}
inline void i_store_int8(int8_t* p, i32x16 x) {
    __m256i w = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xD8);
    _mm_storeu_si128((__m128i*)p, _mm_packs_epi16(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1)));
}

#if defined(TG_ISA_AVXVNNI)
constexpr int kBytesBias = 128;
inline i32x16 dot_nibbles(i32x16 acc, i32x16 w, const int8_t* x) {
    __m256i v = _mm256_set1_epi32(four_bytes(x));
    return {_mm256_dpbusd_avx_epi32(acc.a, w.a, v), _mm256_dpbusd_avx_epi32(acc.b, w.b, v)};
}
inline i32x16 dot_bytes(i32x16 acc, i32x16 w, const int8_t* x) { return dot_nibbles(acc, w, x); }
#else
constexpr int kBytesBias = 0;
inline __m256i dot_pairs(__m256i acc, __m256i w, __m256i x) {  // by way of int16 pairs, which must not saturate
    return _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1)));
}
inline i32x16 dot_nibbles(i32x16 acc, i32x16 w, const int8_t* x) {
    __m256i v = _mm256_set1_epi32(four_bytes(x));
    return {dot_pairs(acc.a, w.a, v), dot_pairs(acc.b, w.b, v)};
}
inline i32x16 dot_bytes(i32x16 acc, i32x16 w, const int8_t* x) {  // |w| times x with w's sign
    __m256i flip = _mm256_set1_epi8((char)0x80), v = _mm256_set1_epi32(four_bytes(x));
    __m256i a = _mm256_xor_si256(w.a, flip), b = _mm256_xor_si256(w.b, flip);
    return {dot_pairs(acc.a, _mm256_abs_epi8(a), _mm256_sign_epi8(v, a)),
            dot_pairs(acc.b, _mm256_abs_epi8(b), _mm256_sign_epi8(v, b))};
}
#endif

// Sum of 8 lanes: i with i+4, then +2, +1, as simd.h's f_sum goes on.
inline float sum_8(__m256 a) {
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_shuffle_ps(b, b, 1)));
}
inline float f_sum(f32x16 x) { return sum_8(_mm256_add_ps(x.a, x.b)); }

}  // namespace
