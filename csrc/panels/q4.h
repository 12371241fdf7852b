// Four bits and one scale for 32 columns; Q4_1 has a minimum too.
//
//   Q4_0   [16 d f16 |           4 x 64 bytes of nibbles]     288 bytes     w = d * (q - 8)
//   Q4_1   [16 d f16 | 16 m f16 | 4 x 64 bytes of nibbles]    320 bytes     w = d * q + m
#pragma once
#include "panel.h"

namespace {

struct Q4_0Panel : BlockPanel {
    static constexpr const char* kName = "Q4_0";
    static constexpr int kFileBytes = 18, kBytes = 288, kBias = 8;
    static void codes(const uint8_t* piece, int, i32x16* v) { nibbles(piece + 32, v); }
    static void scales(const uint8_t* piece, int, Scales& s) { s.d = half_at(piece); }
    static void pack(const Blocks& blocks, uint8_t* piece) {
        blocks.put_halves(piece, 0);
        blocks.put_words(piece + 32, 2, 4);
    }
};

struct Q4_1Panel : BlockPanel {
    static constexpr const char* kName = "Q4_1";
    static constexpr int kFileBytes = 20, kBytes = 320;
    static constexpr bool kHasMinimum = true;
    static void codes(const uint8_t* piece, int, i32x16* v) { nibbles(piece + 64, v); }
    static void scales(const uint8_t* piece, int, Scales& s) { s.d = half_at(piece), s.m = half_at(piece + 32); }
    static void pack(const Blocks& blocks, uint8_t* piece) {
        blocks.put_halves(piece, 0), blocks.put_halves(piece + 32, 2);
        blocks.put_words(piece + 64, 4, 4);
    }
};

}  // namespace
