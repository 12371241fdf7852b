// Activations in int8, by groups of 32 columns: what matmul.h multiplies.
#pragma once
#include <float.h>

#include "ops.h"
#include "simd.h"

namespace {

// The smallest and the largest of a group and 0; NaN where there is one. Floats are in the order of their bits once
// those below zero are turned round, and whole numbers have a vector instruction for the extremes over lanes.
inline void range_of(const float* group, float* low, float* high) {
    const any_int32* bits = (const any_int32*)group;
    int32_t bottom = 0, top = 0;
    for (int i = 0; i < TG_GROUP; i++) {
        const int32_t ordered = bits[i] ^ (bits[i] >> 31 & INT32_MAX);
        bottom = ordered < bottom ? ordered : bottom;
        top = ordered > top ? ordered : top;
    }
    bottom ^= bottom >> 31 & INT32_MAX;
    memcpy(low, &bottom, 4), memcpy(high, &top, 4);
}

// To nearest, ties to even, for |x| < 2^22: beside 3 * 2^22 there is no room for a fraction.
inline float to_nearest(float x) { return x + 12582912.0f - 12582912.0f; }

// Half a group to int8; returns the sum, which is exact in floats.
inline int32_t half_to_int8(const float* x, float inverse, float zero, int8_t* q) {
    const f32x16 steps = f_fma(f_load(x), f_set(inverse), f_set(-zero));
    const i32x16 whole = f_to_int(f_min(f_max(steps, f_set(-127.0f)), f_set(127.0f)));
    i_store_int8(q, whole);
    return (int32_t)f_sum(i_to_float(whole));
}

// One row to int8, by groups of 32: x ~= scale * (q + zero), q = x / scale - zero to nearest, ties to even. Most groups
// have zero = 0 and scale = max|x| / 127. Where one side reaches more than three times as far as the other, as the
// large numbers of a few channels do, nearly half the values of q would be wasted: there they reach from the smallest
// to the largest number, and zero is the middle. (Half the KL, for sums of codes in two fifths of the tiles.)
// A group of zeros stays zeros, and one with a scale below the normal numbers becomes zeros; so does one with NaN or
// infinity, whose scale then says it. q is never -128, for dot_bytes needs -q as well.
void quantise(const tg_rows* x, int row) {
    const float* data = x->data + (size_t)row * x->width;
    tg_group* group = tg_group_of(x, row, 0);
    for (int g = 0; g < x->groups; g++, data += TG_GROUP, group += TG_TILE) {
        float low, high, zero = 0.0f;
        range_of(data, &low, &high);
        const float far = high > -low ? high : -low, near = high > -low ? -low : high;
        const bool is_one_sided = !(far <= 3.0f * near);  // with NaN too, which the sum below then carries on
        const float scale = (is_one_sided ? 0.5f * far + 0.5f * near : far) / 127.0f;
        int32_t first = 0, second = 0;
        if (scale >= FLT_MIN && scale <= FLT_MAX) {
            const float inverse = 1.0f / scale;
            if (is_one_sided) zero = to_nearest((0.5f * high + 0.5f * low) * inverse);
            first = half_to_int8(data, inverse, zero, group->q) + 16 * (int32_t)zero;
            second = half_to_int8(data + 16, inverse, zero, group->q + 16) + 16 * (int32_t)zero;
        } else {
            memset(group->q, 0, TG_GROUP);
        }
        const int16_t offset = (int16_t)zero;
        group->scale = scale;
        group->sum = first + second;
        group->scaled_sum = scale * (float)group->sum;
        group->all = {offset, (int16_t)(first + second)};
        group->half[0] = {offset, (int16_t)first}, group->half[1] = {offset, (int16_t)second};
    }
}

}  // namespace
