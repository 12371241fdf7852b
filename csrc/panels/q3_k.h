// Three bits; each 16 columns have a scale of six bits (less 32), each 256 a d.
//
//   Q3_K   [16 d f16 | 3 x 64 bytes of scales | 8 groups x (128 bytes of bit pairs | 64 bytes of bits)]
//          1760 bytes     w = d * scale * (q - 4)
#pragma once
#include "panel.h"

namespace {

struct Q3_KPanel : BlockPanel {
    static constexpr const char* kName = "Q3_K";
    static constexpr int kColumns = 256, kFileBytes = 110, kBytes = 1760, kBias = 4;
    static constexpr bool kHasHalves = true;
    static void codes(const uint8_t* piece, int g, i32x16* v) {
        bit_pairs(piece + 224 + g * 192, v);
        add_bits(piece + 224 + g * 192 + 128, 2, v);
    }
    static void scales(const uint8_t* piece, int g, Scales& s) {
        s.d = half_at(piece);
        for (int h = 0; h < 2; h++) s.scale[h] = i_sub(six_bits(piece + 32, h, g), i_set(32));
    }
    // file: 32 bytes: bit g of byte j is bit 2 of value j of group g | 64 bytes as in Q2_K | 12 bytes: low nibbles of
    // 16 scales (i in byte i % 8, the second eight high), then their high two bits (i in byte 8 + i % 4) | d
    static void pack(const Blocks& blocks, uint8_t* piece) {
        blocks.put_halves(piece, 108);
        Words s[3], scale[2][8], high[8], low[8];
        blocks.words(96, s, 3);
        for (int i = 0; i < 16; i++)
            scale[i % 2][i / 2] = (s[i % 8 / 4] >> (i % 4 * 8 + i / 8 * 4) & 15) | (s[2] >> (i % 4 * 8 + i / 4 * 2) & 3)
                                                                                       << 4;
        put_six_bits(piece + 32, scale[0], scale[1]);
        blocks.words(0, high, 8);
        for (int g = 0; g < 8; g++) {
            if (g % 4 == 0) blocks.words(32 + g / 4 * 32, low, 8);
            put_bit_pairs(piece + 224 + g * 192, low, g % 4 * 2);
            put_bits(piece + 224 + g * 192 + 128, high, g);
        }
    }
};

}  // namespace
