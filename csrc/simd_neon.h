// simd.h's lanes as four NEON registers, with AArch64's dot product of bytes.
#pragma once
#include <arm_neon.h>
#include <stdint.h>

namespace {

struct f32x16 {
    float32x4_t a, b, c, d;
};
struct i32x16 {
    int32x4_t a, b, c, d;
};

// Of one register: where `mask` is set x, elsewhere y.
inline float32x4_t pick(uint32x4_t mask, float32x4_t x, float32x4_t y) { return vbslq_f32(mask, x, y); }
// Not vmaxq_f32 and vminq_f32, which give NaN where the others give y.
inline float32x4_t larger(float32x4_t x, float32x4_t y) { return pick(vcgtq_f32(x, y), x, y); }
inline float32x4_t smaller(float32x4_t x, float32x4_t y) { return pick(vcltq_f32(x, y), x, y); }
inline float32x4_t load_half(const uint16_t* p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
inline void store_half(uint16_t* p, float32x4_t x) { vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(x))); }
inline float32x4_t load_bfloat(const uint16_t* p) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16)); }
inline int32x4_t look_up(uint8x16_t table, int32x4_t x) {
    return vreinterpretq_s32_u8(vqtbl1q_u8(table, vreinterpretq_u8_s32(x)));
}
inline int32x4_t load_bytes(const uint8_t* p) { return vreinterpretq_s32_u8(vld1q_u8(p)); }
// vcvtnq_s32_f32 saturates and makes NaN 0; both are INT32_MIN here.
inline int32x4_t to_int(float32x4_t x) {
    return vbslq_s32(vcltq_f32(x, vdupq_n_f32(2147483648.0f)), vcvtnq_s32_f32(x), vdupq_n_s32(INT32_MIN));
}
inline float32x4_t power_of_two(int32x4_t n) {
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n, vdupq_n_s32(127)), 23));
}
// Written >> and <<, a shift by a known number is one instruction.
inline int32x4_t shift_right(int32x4_t x, int n) { return vreinterpretq_s32_u32(vreinterpretq_u32_s32(x) >> n); }
inline int32x4_t shift_left(int32x4_t x, int n) { return vreinterpretq_s32_u32(vreinterpretq_u32_s32(x) << n); }
inline int32x4_t dot(int32x4_t acc, int32x4_t w, int32x4_t x) {
    return vdotq_s32(acc, vreinterpretq_s8_s32(w), vreinterpretq_s8_s32(x));
}

inline f32x16 f_set(float x) {
    const float32x4_t v = vdupq_n_f32(x);
    return {v, v, v, v};
}
inline f32x16 f_load(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}; }
inline void f_store(float* p, f32x16 x) {
    vst1q_f32(p, x.a), vst1q_f32(p + 4, x.b), vst1q_f32(p + 8, x.c), vst1q_f32(p + 12, x.d);
}
inline f32x16 f_add(f32x16 x, f32x16 y) {
    return {vaddq_f32(x.a, y.a), vaddq_f32(x.b, y.b), vaddq_f32(x.c, y.c), vaddq_f32(x.d, y.d)};
}
inline f32x16 f_sub(f32x16 x, f32x16 y) {
    return {vsubq_f32(x.a, y.a), vsubq_f32(x.b, y.b), vsubq_f32(x.c, y.c), vsubq_f32(x.d, y.d)};
}
inline f32x16 f_mul(f32x16 x, f32x16 y) {
    return {vmulq_f32(x.a, y.a), vmulq_f32(x.b, y.b), vmulq_f32(x.c, y.c), vmulq_f32(x.d, y.d)};
}
inline f32x16 f_div(f32x16 x, f32x16 y) {
    return {vdivq_f32(x.a, y.a), vdivq_f32(x.b, y.b), vdivq_f32(x.c, y.c), vdivq_f32(x.d, y.d)};
}
inline f32x16 f_max(f32x16 x, f32x16 y) {
    return {larger(x.a, y.a), larger(x.b, y.b), larger(x.c, y.c), larger(x.d, y.d)};
}
inline f32x16 f_min(f32x16 x, f32x16 y) {
    return {smaller(x.a, y.a), smaller(x.b, y.b), smaller(x.c, y.c), smaller(x.d, y.d)};
}
inline f32x16 f_fma(f32x16 x, f32x16 y, f32x16 z) {
    return {vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c), vfmaq_f32(z.d, x.d, y.d)};
}
inline f32x16 f_abs(f32x16 x) { return {vabsq_f32(x.a), vabsq_f32(x.b), vabsq_f32(x.c), vabsq_f32(x.d)}; }
inline f32x16 f_round(f32x16 x) { return {vrndnq_f32(x.a), vrndnq_f32(x.b), vrndnq_f32(x.c), vrndnq_f32(x.d)}; }
inline f32x16 f_zero_below(f32x16 v, f32x16 x, float limit) {
    const float32x4_t l = vdupq_n_f32(limit), zero = vdupq_n_f32(0.0f);
    return {pick(vcgeq_f32(x.a, l), v.a, zero), pick(vcgeq_f32(x.b, l), v.b, zero), pick(vcgeq_f32(x.c, l), v.c, zero),
            pick(vcgeq_f32(x.d, l), v.d, zero)};
}
inline f32x16 f_keep_first(f32x16 x, int n, float rest) {
    const int32x4_t lane = {0, 1, 2, 3};
    const float32x4_t r = vdupq_n_f32(rest);
    return {pick(vcltq_s32(lane, vdupq_n_s32(n)), x.a, r), pick(vcltq_s32(lane, vdupq_n_s32(n - 4)), x.b, r),
            pick(vcltq_s32(lane, vdupq_n_s32(n - 8)), x.c, r), pick(vcltq_s32(lane, vdupq_n_s32(n - 12)), x.d, r)};
}
inline int f_count_greater(f32x16 x, f32x16 y) {  // a true lane is all ones: -1
    const uint32x4_t low = vaddq_u32(vcgtq_f32(x.a, y.a), vcgtq_f32(x.b, y.b));
    const uint32x4_t high = vaddq_u32(vcgtq_f32(x.c, y.c), vcgtq_f32(x.d, y.d));
    return -(int)vaddvq_u32(vaddq_u32(low, high));
}
inline f32x16 f_load_half(const uint16_t* p) {
    return {load_half(p), load_half(p + 4), load_half(p + 8), load_half(p + 12)};
}
inline void f_store_half(uint16_t* p, f32x16 x) {
    store_half(p, x.a), store_half(p + 4, x.b), store_half(p + 8, x.c), store_half(p + 12, x.d);
}
inline f32x16 f_load_bfloat(const uint16_t* p) {
    return {load_bfloat(p), load_bfloat(p + 4), load_bfloat(p + 8), load_bfloat(p + 12)};
}
inline i32x16 i_set(int32_t x) {
    const int32x4_t v = vdupq_n_s32(x);
    return {v, v, v, v};
}
inline i32x16 i_load(const void* p) {
    const uint8_t* q = (const uint8_t*)p;
    return {load_bytes(q), load_bytes(q + 16), load_bytes(q + 32), load_bytes(q + 48)};
}
inline i32x16 i_add(i32x16 x, i32x16 y) {
    return {vaddq_s32(x.a, y.a), vaddq_s32(x.b, y.b), vaddq_s32(x.c, y.c), vaddq_s32(x.d, y.d)};
}
inline i32x16 i_sub(i32x16 x, i32x16 y) {
    return {vsubq_s32(x.a, y.a), vsubq_s32(x.b, y.b), vsubq_s32(x.c, y.c), vsubq_s32(x.d, y.d)};
}
inline i32x16 i_or(i32x16 x, i32x16 y) {
    return {vorrq_s32(x.a, y.a), vorrq_s32(x.b, y.b), vorrq_s32(x.c, y.c), vorrq_s32(x.d, y.d)};
}
inline i32x16 i_and(i32x16 x, i32x16 y) {
    return {vandq_s32(x.a, y.a), vandq_s32(x.b, y.b), vandq_s32(x.c, y.c), vandq_s32(x.d, y.d)};
}
inline i32x16 i_shift_right(i32x16 x, int n) {
    return {shift_right(x.a, n), shift_right(x.b, n), shift_right(x.c, n), shift_right(x.d, n)};
}
inline i32x16 i_shift_left(i32x16 x, int n) {
    return {shift_left(x.a, n), shift_left(x.b, n), shift_left(x.c, n), shift_left(x.d, n)};
}
inline i32x16 i_mul(i32x16 x, i32x16 y) {
    return {vmulq_s32(x.a, y.a), vmulq_s32(x.b, y.b), vmulq_s32(x.c, y.c), vmulq_s32(x.d, y.d)};
}
inline int32x4_t mul_pairs(int32x4_t x, int32x4_t y) {
    const int16x8_t a = vreinterpretq_s16_s32(x), b = vreinterpretq_s16_s32(y);
    return vpaddq_s32(vmull_s16(vget_low_s16(a), vget_low_s16(b)), vmull_high_s16(a, b));
}
inline i32x16 i_mul_pairs(i32x16 x, i32x16 y) {
    return {mul_pairs(x.a, y.a), mul_pairs(x.b, y.b), mul_pairs(x.c, y.c), mul_pairs(x.d, y.d)};
}
inline i32x16 i_lookup(const uint8_t* table, i32x16 x) {
    const uint8x16_t t = vld1q_u8(table);
    return {look_up(t, x.a), look_up(t, x.b), look_up(t, x.c), look_up(t, x.d)};
}
inline f32x16 i_to_float(i32x16 x) {
    return {vcvtq_f32_s32(x.a), vcvtq_f32_s32(x.b), vcvtq_f32_s32(x.c), vcvtq_f32_s32(x.d)};
}
inline i32x16 f_to_int(f32x16 x) { return {to_int(x.a), to_int(x.b), to_int(x.c), to_int(x.d)}; }
inline f32x16 f_power_of_two(i32x16 n) {
    return {power_of_two(n.a), power_of_two(n.b), power_of_two(n.c), power_of_two(n.d)};
}
inline i32x16 i_load_int8(const int8_t* p) {
    const int8x16_t bytes = vld1q_s8(p);
    const int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_s8(vget_high_s8(bytes));
    return {vmovl_s16(vget_low_s16(low)), vmovl_s16(vget_high_s16(low)), vmovl_s16(vget_low_s16(high)),
            vmovl_s16(vget_high_s16(high))};
}
inline void i_store_int8(int8_t* p, i32x16 x) {
    const int16x8_t low = vcombine_s16(vqmovn_s32(x.a), vqmovn_s32(x.b));
    const int16x8_t high = vcombine_s16(vqmovn_s32(x.c), vqmovn_s32(x.d));
    vst1q_s8(p, vcombine_s8(vqmovn_s16(low), vqmovn_s16(high)));
}

// Signed times signed bytes into int32: nibbles fit, and w + 128 is w with its sign bit flipped.
constexpr int kBytesBias = 0;
inline i32x16 dot_nibbles(i32x16 acc, i32x16 w, const int8_t* x) {
    const int32x4_t v = vdupq_n_s32(four_bytes(x));
    return {dot(acc.a, w.a, v), dot(acc.b, w.b, v), dot(acc.c, w.c, v), dot(acc.d, w.d, v)};
}
inline i32x16 dot_bytes(i32x16 acc, i32x16 w, const int8_t* x) {
    const int32x4_t flip = vdupq_n_s32((int32_t)0x80808080);
    return dot_nibbles(acc, {veorq_s32(w.a, flip), veorq_s32(w.b, flip), veorq_s32(w.c, flip), veorq_s32(w.d, flip)},
                       x);
}

}  // namespace
