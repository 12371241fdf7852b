// Two bits; each 16 columns have a scale and a minimum of four bits, each 256 a d and a dmin for those.
//
//   Q2_K   [16 d f16 | 16 dmin f16 | 4 x 64 bytes: eight scales of the first halves, of the second, minimums alike |
//           8 groups x 128 bytes of bit pairs]                  1344 bytes     w = d * scale * q - dmin * minimum
#pragma once
#include "panel.h"

namespace {

struct Q2_KPanel : BlockPanel {
    static constexpr const char* kName = "Q2_K";
    static constexpr int kColumns = 256, kFileBytes = 84, kBytes = 1344;
    static constexpr bool kHasHalves = true, kHasMinimum = true;
    static void codes(const uint8_t* piece, int g, i32x16* v) { bit_pairs(piece + 320 + g * 128, v); }
    static void scales(const uint8_t* piece, int g, Scales& s) {
        s.d = half_at(piece), s.m = f_sub(f_set(-0.0f), half_at(piece + 32));
        for (int h = 0; h < 2; h++) {
            s.scale[h] = i_and(i_shift_right(i_load(piece + 64 + h * 64), 4 * g), i_set(15));
            s.minimum[h] = i_and(i_shift_right(i_load(piece + 192 + h * 64), 4 * g), i_set(15));
        }
    }
    // file: 16 bytes (scale low, minimum high) | 64 bytes: 32 of them hold 128 values, two bits for each 32 | d | dmin
    static void pack(const Blocks& blocks, uint8_t* piece) {
        blocks.put_halves(piece, 80), blocks.put_halves(piece + 32, 82);
        Words both[4], q[8];
        blocks.words(0, both, 4);
        for (int h = 0; h < 2; h++) {
            Words scale = {}, minimum = {};
            for (int g = 0; g < 8; g++) {
                const Words byte = both[g / 2] >> (g % 2 * 16 + h * 8);
                scale |= (byte & 15) << 4 * g, minimum |= (byte >> 4 & 15) << 4 * g;
            }
            memcpy(piece + 64 + h * 64, &scale, 64), memcpy(piece + 192 + h * 64, &minimum, 64);
        }
        for (int g = 0; g < 8; g++) {
            if (g % 4 == 0) blocks.words(16 + g / 4 * 32, q, 8);
            put_bit_pairs(piece + 320 + g * 128, q, g % 4 * 2);
        }
    }
};

}  // namespace
