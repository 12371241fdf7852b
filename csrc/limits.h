// The limits of the machine, that speeds are held against: `tokenglass bench` times these two.
#pragma once
#include "ops.h"
#include "simd.h"

namespace {

int64_t read_all(const uint8_t* data, size_t bytes) {
    i32x16 a = i_set(0), b = a, c = a, d = a;
    for (size_t i = 0; i + 256 <= bytes; i += 256) {
        for (int line = 0; line < 256; line += 64) __builtin_prefetch(data + i + 2048 + line, 0, 0);
        a = i_add(a, i_load(data + i)), b = i_add(b, i_load(data + i + 64));
        c = i_add(c, i_load(data + i + 128)), d = i_add(d, i_load(data + i + 192));
    }
    float v[16];
    f_store(v, i_to_float(i_add(i_add(a, b), i_add(c, d))));
    int64_t sum = 0;
    for (int i = 0; i < 16; i++) sum += (int64_t)v[i];
    return sum;
}

#if defined(TG_ISA_AVX512)
constexpr int kChains = 12;  // independent sums: enough to hide an instruction's latency, few enough for the registers
#else
constexpr int kChains = 6;
#endif
static_assert(TG_PEAK_DOTS % kChains == 0, "every chain takes the same number of products");

// The products' own instruction, as often as the processor takes it: no memory beyond the first cache, no scales, no
// stores. w is [12, 64] nibbles, x is [16, 4]. Every chain sums at most 15 * 127 * 4 * TG_PEAK_DOTS / kChains: below
// 2^31.
int64_t int8_peak(const uint8_t* w, const int8_t* x) {
    i32x16 sums[kChains], weights[kChains];  // all different: equal products would be computed once
    for (int c = 0; c < kChains; c++) sums[c] = i_set(0), weights[c] = i_load(w + 64 * c);
    for (int i = 0; i < TG_PEAK_DOTS / kChains; i++) {
        const int8_t* quad = x + 4 * (i % 16);
        for (int c = 0; c < kChains; c++) sums[c] = dot_nibbles(sums[c], weights[c], quad);
    }
    i32x16 total = sums[0];
    for (int c = 1; c < kChains; c++) total = i_add(total, sums[c]);
    float v[16];
    f_store(v, i_to_float(total));
    return (int64_t)v[0];
}

}  // namespace
