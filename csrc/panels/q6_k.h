// Six bits; each 16 columns have a scale of eight bits, each 256 a d.
//
//   Q6_K   [16 d f16 | 4 x 64 bytes: scale + 128 of the first halves of groups 0-3, 4-7, then of the second halves |
//           8 groups x (256 bytes of nibbles | 128 bytes of bit pairs)]     3360 bytes     w = d * scale * (q - 32)
#pragma once
#include "panel.h"

namespace {

struct Q6_KPanel : BlockPanel {
    static constexpr const char* kName = "Q6_K";
    static constexpr int kColumns = 256, kFileBytes = 210, kBytes = 3360, kBias = 32;
    static constexpr bool kHasHalves = true;
    static void codes(const uint8_t* piece, int g, i32x16* v) {
        nibbles(piece + 288 + g * 384, v);
        add_bit_pairs(piece + 288 + g * 384 + 256, 4, v);
    }
    static void scales(const uint8_t* piece, int g, Scales& s) {
        s.d = half_at(piece);
        for (int h = 0; h < 2; h++) {
            const i32x16 word = i_load(piece + 32 + h * 128 + g / 4 * 64);
            s.scale[h] = i_sub(i_and(i_shift_right(word, g % 4 * 8), i_set(255)), i_set(128));
        }
    }
    // file: two halves of 64 bytes: low nibbles of groups 0 and 1, high ones of 2 and 3 | two halves of 32 bytes: two
    // bits for each of the four groups | 16 scales | d
    static void pack(const Blocks& blocks, uint8_t* piece) {
        blocks.put_halves(piece, 208);
        Words s[4], low[2][8], high[8];
        blocks.words(192, s, 4);
        for (int i = 0; i < 4; i++) {  // h = i / 2, groups 4 * (i % 2) and on
            Words scale = {};
            for (int g = 0; g < 4; g++) scale |= (s[i % 2 * 2 + g / 2] >> (g % 2 * 16 + i / 2 * 8) & 255) << 8 * g;
            scale ^= 0x80808080;
            memcpy(piece + 32 + i * 64, &scale, 64);
        }
        for (int g = 0; g < 8; g++) {
            if (g % 4 == 0) {
                blocks.words(g / 4 * 64, low[0], 8), blocks.words(g / 4 * 64 + 32, low[1], 8);
                blocks.words(128 + g / 4 * 32, high, 8);
            }
            put_nibbles(piece + 288 + g * 384, low[g % 2], g % 4 / 2 * 4);
            put_bit_pairs(piece + 288 + g * 384 + 256, high, g % 4 * 2);
        }
    }
};

}  // namespace
