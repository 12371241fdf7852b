// simd.h's lanes in plain C++: what each function of the other files means, bit for bit.
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>

namespace {

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
inline f32x16 f_load_bfloat(const uint16_t* p) {  // the upper halves of floats
    f32x16 r;
    TG_EACH {
        uint32_t bits = (uint32_t)p[l] << 16;
        memcpy(&r.v[l], &bits, 4);
    }
    return r;
}
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
inline i32x16 i_or(i32x16 a, i32x16 b) {
    TG_EACH a.v[l] |= b.v[l];
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
inline i32x16 i_mul(i32x16 a, i32x16 b) {
    TG_EACH a.v[l] *= b.v[l];
    return a;
}
inline i32x16 i_mul_pairs(i32x16 a, i32x16 b) {  // of signed halves: low * low + high * high
    TG_EACH a.v[l] = (int16_t)a.v[l] * (int16_t)b.v[l] + (a.v[l] >> 16) * (b.v[l] >> 16);
    return a;
}
inline i32x16 i_lookup(const uint8_t* table, i32x16 a) {  // every byte, 0..15, becomes the table's byte of that number
    i32x16 r;
    uint8_t bytes[64];
    memcpy(bytes, a.v, 64);
    for (int i = 0; i < 64; i++) bytes[i] = table[bytes[i] & 15];
    memcpy(r.v, bytes, 64);
    return r;
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
inline i32x16 i_load_int8(const int8_t* p) {
    i32x16 r;
    TG_EACH r.v[l] = p[l];
    return r;
}
inline void i_store_int8(int8_t* p, i32x16 a) {  // saturating
    TG_EACH p[l] = (int8_t)(a.v[l] > 127 ? 127 : a.v[l] < -128 ? -128 : a.v[l]);
}

constexpr int kBytesBias = 0;
inline i32x16 dot_nibbles(i32x16 acc, i32x16 w, const int8_t* x) {
    const int32_t x4 = four_bytes(x);
    TG_EACH for (int b = 0; b < 4; b++) {
        acc.v[l] += (int32_t)(uint8_t)((uint32_t)w.v[l] >> (8 * b)) * (int8_t)((uint32_t)x4 >> (8 * b));
    }
    return acc;
}
inline i32x16 dot_bytes(i32x16 acc, i32x16 w, const int8_t* x) {
    const int32_t x4 = four_bytes(x);
    TG_EACH for (int b = 0; b < 4; b++) {
        acc.v[l] += ((int32_t)(uint8_t)((uint32_t)w.v[l] >> (8 * b)) - 128) * (int8_t)((uint32_t)x4 >> (8 * b));
    }
    return acc;
}

}  // namespace
