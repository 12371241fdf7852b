// Eight bits and one scale for 32 columns.
//
//   Q8_0   [16 d f16 | 8 x 64 bytes of q + 128]     544 bytes     w = d * q
#pragma once
#include "panel.h"

namespace {

struct Q8_0Panel : BlockPanel {
    static constexpr const char* kName = "Q8_0";
    static constexpr int kFileBytes = 34, kBytes = 544, kBias = 128;
    static constexpr bool kIsWide = true;
    static void codes(const uint8_t* piece, int, i32x16* v) {
        for (int j = 0; j < 8; j++) v[j] = i_load(piece + 32 + j * 64);
    }
    static void scales(const uint8_t* piece, int, Scales& s) { s.d = half_at(piece); }
    static void pack(const Blocks& blocks, uint8_t* piece) {
        blocks.put_halves(piece, 0);
        blocks.put_words(piece + 32, 2, 8, 0x80808080);
    }
};

}  // namespace
