// Five bits and one scale for 32 columns: nibbles, then bit 4 of every code; Q5_1 has a minimum too.
//
//   Q5_0   [16 d f16 |            4 x 64 bytes of nibbles | 64 bytes of bits]     352 bytes     w = d * (q - 16)
//   Q5_1   [16 d f16 | 16 m f16 | 4 x 64 bytes of nibbles | 64 bytes of bits]     384 bytes     w = d * q + m
#pragma once
#include "panel.h"

namespace {

template <int kHead>  // bytes before the codes: in the piece 16 times as many
struct Q5Panel : BlockPanel {
    static void codes(const uint8_t* piece, int, i32x16* v) {
        nibbles(piece + 16 * kHead, v);
        add_bits(piece + 16 * kHead + 256, 4, v);
    }
    static void pack(const uint8_t* block, uint8_t* piece, int lane) {
        for (int i = 0; i < kHead; i += 2) put_half(piece + 16 * i, lane, block + i);
        const uint8_t *high = block + kHead, *low = high + 4;
        uint8_t q[32];
        for (int i = 0; i < 32; i++)
            q[i] = (uint8_t)((low[i % 16] >> i / 16 * 4 & 15) | (high[i / 8] >> i % 8 & 1) << 4);
        put_nibbles(piece + 16 * kHead, lane, q);
        put_bits(piece + 16 * kHead + 256, lane, q, 4);
    }
};
struct Q5_0Panel : Q5Panel<2> {
    static constexpr const char* kName = "Q5_0";
    static constexpr int kFileBytes = 22, kBytes = 352, kBias = 16;
    static void scales(const uint8_t* piece, int, Scales& s) { s.d = half_at(piece); }
};
struct Q5_1Panel : Q5Panel<4> {
    static constexpr const char* kName = "Q5_1";
    static constexpr int kFileBytes = 24, kBytes = 384;
    static constexpr bool kHasMinimum = true;
    static void scales(const uint8_t* piece, int, Scales& s) { s.d = half_at(piece), s.m = half_at(piece + 32); }
};

}  // namespace
