// simd.h's lanes as one AVX-512 register. With TG_ISA_AVX512VNNI a product of bytes is one instruction.
#pragma once
#include <immintrin.h>
#include <stdint.h>

namespace {

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
inline f32x16 f_load_bfloat(const uint16_t* p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p)), 16));
}
inline i32x16 i_set(int32_t x) { return _mm512_set1_epi32(x); }
inline i32x16 i_load(const void* p) { return _mm512_loadu_si512(p); }
inline i32x16 i_add(i32x16 a, i32x16 b) { return _mm512_add_epi32(a, b); }
inline i32x16 i_or(i32x16 a, i32x16 b) { return _mm512_or_si512(a, b); }
inline i32x16 i_and(i32x16 a, i32x16 b) { return _mm512_and_si512(a, b); }
inline i32x16 i_shift_right(i32x16 a, int n) { return _mm512_srl_epi32(a, _mm_cvtsi32_si128(n)); }
inline i32x16 i_shift_left(i32x16 a, int n) { return _mm512_sll_epi32(a, _mm_cvtsi32_si128(n)); }
inline i32x16 i_sub(i32x16 a, i32x16 b) { return _mm512_sub_epi32(a, b); }
inline i32x16 i_mul(i32x16 a, i32x16 b) { return _mm512_mullo_epi32(a, b); }
inline i32x16 i_mul_pairs(i32x16 a, i32x16 b) { return _mm512_madd_epi16(a, b); }
inline i32x16 i_lookup(const uint8_t* table, i32x16 a) {
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i*)table)), a);
}
inline f32x16 i_to_float(i32x16 a) { return _mm512_cvtepi32_ps(a); }
inline i32x16 f_to_int(f32x16 a) { return _mm512_cvtps_epi32(a); }
inline f32x16 f_power_of_two(i32x16 n) {  // 2^n for -126 <= n <= 127
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(n, _mm512_set1_epi32(127)), 23));
}
inline i32x16 i_load_int8(const int8_t* p) { return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)p)); }
inline void i_store_int8(int8_t* p, i32x16 a) { _mm_storeu_si128((__m128i*)p, _mm512_cvtsepi32_epi8(a)); }

#if defined(TG_ISA_AVX512VNNI)
constexpr int kBytesBias = 128;
inline i32x16 dot_nibbles(i32x16 acc, i32x16 w, const int8_t* x) {
    return _mm512_dpbusd_epi32(acc, w, _mm512_set1_epi32(four_bytes(x)));
}
inline i32x16 dot_bytes(i32x16 acc, i32x16 w, const int8_t* x) { return dot_nibbles(acc, w, x); }
#else
constexpr int kBytesBias = 0;
inline i32x16 dot_pairs(i32x16 acc, i32x16 w, i32x16 x) {  // by way of int16 pairs, which must not saturate
    return _mm512_add_epi32(acc, _mm512_madd_epi16(_mm512_maddubs_epi16(w, x), _mm512_set1_epi16(1)));
}
inline i32x16 dot_nibbles(i32x16 acc, i32x16 w, const int8_t* x) {
    return dot_pairs(acc, w, _mm512_set1_epi32(four_bytes(x)));
}
inline i32x16 dot_bytes(i32x16 acc, i32x16 w, const int8_t* x) {  // |w| times x with w's sign
    __m512i s = _mm512_xor_si512(w, _mm512_set1_epi8((char)0x80)), v = _mm512_set1_epi32(four_bytes(x));
    __m512i signed_x = _mm512_mask_sub_epi8(v, _mm512_movepi8_mask(s), _mm512_setzero_si512(), v);
    return dot_pairs(acc, _mm512_abs_epi8(s), signed_x);
}
#endif

// Sum of 8 lanes: i with i+4, then +2, +1, as simd.h's f_sum goes on.
inline float sum_8(__m256 a) {
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_shuffle_ps(b, b, 1)));
}
inline float f_sum(f32x16 a) { return sum_8(_mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1))); }

}  // namespace
