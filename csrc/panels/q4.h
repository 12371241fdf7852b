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
    static void pack(const uint8_t* block, uint8_t* piece, int lane) {
        put_half(piece, lane, block);
        for (int j = 0; j < 4; j++) memcpy(piece + 32 + j * 64 + lane * 4, block + 2 + j * 4, 4);
    }
};

struct Q4_1Panel : BlockPanel {
    static constexpr const char* kName = "Q4_1";
    static constexpr int kFileBytes = 20, kBytes = 320;
    static constexpr bool kHasMinimum = true;
    static void codes(const uint8_t* piece, int, i32x16* v) { nibbles(piece + 64, v); }
    static void scales(const uint8_t* piece, int, Scales& s) { s.d = half_at(piece), s.m = half_at(piece + 32); }
    static void pack(const uint8_t* block, uint8_t* piece, int lane) {
        put_half(piece, lane, block), put_half(piece + 32, lane, block + 2);
        for (int j = 0; j < 4; j++) memcpy(piece + 64 + j * 64 + lane * 4, block + 4 + j * 4, 4);
    }
};

}  // namespace
