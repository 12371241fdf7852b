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
    // file: d | for Q5_1 m | bit 4 of every code | nibbles as in Q4_0
    static void pack(const Blocks& blocks, uint8_t* piece) {
        for (int i = 0; i < kHead; i += 2) blocks.put_halves(piece + 16 * i, i);
        Words high, bits[8];
        blocks.words(kHead, &high, 1);
        for (int j = 0; j < 8; j++) {
            const Words four = high >> 4 * j & 15;
            bits[j] = four | four << 7 | four << 14 | four << 21;  // bit i is bit 0 of byte i
        }
        blocks.put_words(piece + 16 * kHead, kHead + 4, 4);
        put_bits(piece + 16 * kHead + 256, bits, 0);
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
