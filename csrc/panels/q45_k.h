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
    static void pack(const uint8_t* block, uint8_t* piece, int lane) {
        put_half(piece, lane, block), put_half(piece + 32, lane, block + 2);
        const uint8_t* s = block + 4;
        uint8_t scale[8], minimum[8];
        for (int i = 0; i < 4; i++) {
            scale[i] = s[i] & 63, minimum[i] = s[i + 4] & 63;
            scale[i + 4] = (uint8_t)((s[i + 8] & 15) | s[i] >> 6 << 4);
            minimum[i + 4] = (uint8_t)(s[i + 8] >> 4 | s[i + 4] >> 6 << 4);
        }
        put_six_bits(piece + 64, lane, scale, minimum);
        const uint8_t* low = block + kFileBytes - 128;
        for (int g = 0; g < 8; g++) {
            uint8_t q[32];
            for (int i = 0; i < 32; i++) q[i] = low[g / 2 * 32 + i] >> g % 2 * 4 & 15;
            put_nibbles(piece + 256 + g * kGroup, lane, q);
            if (kBits == 5) put_bits(piece + 512 + g * kGroup, lane, block + 16, g);
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
