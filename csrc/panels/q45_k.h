// Four or five bits; each 32 columns have a scale and a minimum of six bits, each 256 a d and a dmin for those.
//
//   Q4_K   [16 d f16 | 16 dmin f16 | 3 x 64 bytes of scales and minimums | 8 groups x 256 bytes of nibbles]
//          2304 bytes     w = d * scale * q - dmin * minimum
//   Q5_K   the same with 64 bytes of bits behind the nibbles of each group     2816 bytes
//
// d * scale is exact in float32 (11 and 6 bits), so a group has one scale and one minimum like a block of Q4_1.
#pragma once
#include "panel.h"

namespace {

template <int kBits>
struct Q45_KPanel : BlockPanel {
    static constexpr int kColumns = 256, kFileBytes = 16 + 32 * kBits, kGroup = 64 * kBits;
    static constexpr int kBytes = 256 + 8 * kGroup;
    static constexpr bool kHasMinimum = true;
    static void codes(const uint8_t* piece, int g, i32x16* v) {
        nibbles(piece + 256 + g * kGroup, v);
        if (kBits == 5) add_bits(piece + 512 + g * kGroup, 4, v);
    }
    static void scales(const uint8_t* piece, int g, Scales& s) {
        s.d = f_mul(half_at(piece), i_to_float(six_bits(piece + 64, 0, g)));
        s.m = f_sub(f_set(-0.0f), f_mul(half_at(piece + 32), i_to_float(six_bits(piece + 64, 1, g))));
    }
    // file: d | dmin | 12 bytes | for 5 bits 32 bytes: bit g of byte j is bit 4 of value j of group g | 4 x 32 bytes:
    // the low nibbles are a group, the high ones the next. Of the 12: 0-3 scales 0-3, 4-7 minimums 0-3, six bits each;
    // 8-11 low nibbles of scales and minimums 4-7, whose high two bits are the high bits of 0-3 and 4-7.
    static void pack(const Blocks& blocks, uint8_t* piece) {
        blocks.put_halves(piece, 0), blocks.put_halves(piece + 32, 2);
        Words s[3], scale[8], minimum[8], high[8], low[8];
        blocks.words(4, s, 3);
        for (int i = 0; i < 4; i++) {
            const int byte = 8 * i;
            scale[i] = s[0] >> byte & 63, minimum[i] = s[1] >> byte & 63;
            scale[i + 4] = (s[2] >> byte & 15) | (s[0] >> (byte + 6) & 3) << 4;
            minimum[i + 4] = (s[2] >> (byte + 4) & 15) | (s[1] >> (byte + 6) & 3) << 4;
        }
        put_six_bits(piece + 64, scale, minimum);
        if (kBits == 5) blocks.words(16, high, 8);
        for (int g = 0; g < 8; g++) {
            if (g % 2 == 0) blocks.words(kFileBytes - 128 + g / 2 * 32, low, 8);
            put_nibbles(piece + 256 + g * kGroup, low, g % 2 * 4);
            if (kBits == 5) put_bits(piece + 512 + g * kGroup, high, g);
        }
    }
};
struct Q4_KPanel : Q45_KPanel<4> {
    static constexpr const char* kName = "Q4_K";
};
struct Q5_KPanel : Q45_KPanel<5> {
    static constexpr const char* kName = "Q5_K";
};

}  // namespace
