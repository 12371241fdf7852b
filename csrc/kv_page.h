// What a KV page holds, for each kind of numbers: how 16 of them are loaded and stored.
//
// A page has 16 positions of one layer; in it one block for each KV head. Lanes of K are positions, of V dimensions:
//
//   F32, F16   K: head_dim x 16 [d][slot]        | V: 16 x head_dim [slot][d]
//   Q8         K: codes, then scales [d/32][slot] | V: codes, then scales [d/32][slot]
//
// Q8 is int8 with one float16 scale for 32 dimensions of one position: 8.5 bits a number, as Q8_0. (One scale for a
// whole head would save 0.4 bits of them, but a few dimensions of keys are often ten times as large as the others.)
#pragma once
#include "ops.h"
#include "simd.h"

namespace {

enum { kGroup = 32 };  // dimensions that share a scale

constexpr size_t value_bytes(int kind) { return kind == TG_KV_F32 ? 4 : kind == TG_KV_F16 ? 2 : 1; }

// 16 neighbouring numbers, number `at` of K or V; of Q8 the codes.
template <int kKind>
inline f32x16 load_values(const uint8_t* p, size_t at) {
    if (kKind == TG_KV_F32) return f_load((const float*)p + at);
    if (kKind == TG_KV_F16) return f_load_half((const uint16_t*)p + at);
    return i_to_float(i_load_int8((const int8_t*)p + at));
}

// Of Q8: the scales of a page's 16 positions for the dimensions around d, in K or V.
inline const uint16_t* scales_at(const uint8_t* p, int dim, int d) {
    return (const uint16_t*)(p + TG_PAGE * dim) + d / kGroup * TG_PAGE;
}

// Beyond float16's range its largest value stands in for infinity; NaN stays NaN.
inline f32x16 in_half_range(f32x16 x) { return f_min(f_set(65504.0f), f_max(f_set(-65504.0f), x)); }

// One head of one position: x to every stride-th number from number `at` on.
inline void store_values(uint8_t* p, int kind, size_t at, size_t stride, const float* x, int dim) {
    for (int d = 0; d < dim; d += 16) {
        if (kind == TG_KV_F32) {
            for (int i = d; i < d + 16; i++) ((float*)p)[at + i * stride] = x[i];
        } else {
            uint16_t h[16];
            f_store_half(h, in_half_range(f_load(x + d)));
            for (int i = 0; i < 16; i++) ((uint16_t*)p)[at + (d + i) * stride] = h[i];
        }
    }
}

// The same as codes: x / scale to nearest, ties to even, where scale is max|x| / 127 as a float16. `scales`: of this
// position, TG_PAGE numbers from group to group.
inline void store_codes(int8_t* p, size_t at, size_t stride, const float* x, int dim, uint16_t* scales) {
    for (int from = 0; from < dim; from += kGroup, scales += TG_PAGE) {
        const int end = from + kGroup < dim ? from + kGroup : dim;
        f32x16 largest = f_set(0.0f), poison = f_set(0.0f);  // of a NaN: NaN, which the maximum would hide
        for (int d = from; d < end; d += 16) {
            const f32x16 v = in_half_range(f_load(x + d));
            largest = f_max(f_abs(v), largest), poison = f_fma(v, f_set(0.0f), poison);
        }
        uint16_t scale[16];
        f_store_half(scale, f_set(f_largest(largest) / 127.0f + f_sum(poison)));
        const f32x16 factor = f_load_half(scale);  // 16 times the same
        *scales = scale[0];
        for (int d = from; d < end; d += 16) {
            int8_t q[16];
            const f32x16 ratio = f_div(in_half_range(f_load(x + d)), factor);  // 0 / 0 is NaN, x / 0 infinity
            i_store_int8(q, f_to_int(f_min(f_max(ratio, f_set(-127.0f)), f_set(127.0f))));
            for (int i = 0; i < 16; i++) p[at + (d + i) * stride] = scale[0] ? q[i] : 0;
        }
    }
}

}  // namespace
