// What all panels have in common. A panel is 16 rows of a matrix; lane r of every vector belongs to row r. A *piece* of
// a panel is what 16 blocks of the file became, one from each row, with the same bytes in another order: nothing is
// lost and nothing grows. A kind of panel is a struct with these members, one file of this folder each:
//
//   kName, kColumns, kFileBytes   as in the file: its name in GGUF, values in a block and bytes of one
//   kBytes                        of a piece
//   kBias                         stored codes are q + kBias, so that they are not negative; kBias is a power of two
//   kIsWide                       codes reach 255, not only 127 (simd.h: dot_bytes)
//   kHasHalves, kHasMinimum       which members of `Scales` count
//   pack(blocks, piece)           writes a piece, every byte of it, from 16 blocks of the file (pack.h)
//   codes(piece, g, v)            unpacks group g (32 columns): bytes of v[j] are columns 4j..4j+3 for j < 4, else
//                                 16+4(j-4)..16+4(j-4)+3, so that v[0..3] and v[4..7] are the group's two halves
//   scales(piece, g, s)           how codes become weights, drawn at `Scales`
//
// The codes lie so that one shift and one mask unpack four vectors: nibbles 64 bytes at a time (v[j] low, v[j+4] high),
// pairs of bits (v[j] and v[4+j] in bits 2j of two vectors), single bits (v[j] in bit j).
#pragma once
#include "../simd.h"
#include "pack.h"

namespace {

// w = d * (q - bias) + m. With halves: w = d * scale[h] * (q - bias) + m * minimum[h] for the columns of half h.
struct Scales {
    f32x16 d, m;
    i32x16 scale[2], minimum[2];
};

struct BlockPanel {  // what most kinds of blocks are like
    static constexpr bool kIsFloat = false, kIsWide = false, kHasHalves = false, kHasMinimum = false;
    static constexpr int kColumns = 32, kBias = 0;
};

inline void nibbles(const uint8_t* p, i32x16* v) {
    const i32x16 low = i_set(0x0f0f0f0f);
    for (int j = 0; j < 4; j++) {
        const i32x16 both = i_load(p + j * 64);
        v[j] = i_and(both, low);
        v[j + 4] = i_and(i_shift_right(both, 4), low);
    }
}
// Bits `from`.. of every byte of `a` that `mask` keeps, moved to bits `to`..
inline i32x16 moved_bits(i32x16 a, int from, int to, int mask) {
    return i_and(from > to ? i_shift_right(a, from - to) : i_shift_left(a, to - from), i_set(mask * 0x01010101 << to));
}
inline void add_bits(const uint8_t* p, int to, i32x16* v) {  // 64 bytes: one bit for each code
    const i32x16 bits = i_load(p);
    for (int j = 0; j < 8; j++) v[j] = i_or(v[j], moved_bits(bits, j, to, 1));
}
inline void bit_pairs(const uint8_t* p, i32x16* v) {
    for (int j = 0; j < 8; j++) v[j] = moved_bits(i_load(p + j / 4 * 64), j % 4 * 2, 0, 3);
}
inline void add_bit_pairs(const uint8_t* p, int to, i32x16* v) {  // 128 bytes: two bits for each code
    for (int j = 0; j < 8; j++) v[j] = i_or(v[j], moved_bits(i_load(p + j / 4 * 64), j % 4 * 2, to, 3));
}

inline f32x16 half_at(const uint8_t* p) { return f_load_half((const uint16_t*)p); }

inline i32x16 six_bits(const uint8_t* p, int which, int g) {
    const i32x16 low = i_and(i_shift_right(i_load(p + which * 64), 4 * g), i_set(15));
    const i32x16 high = i_and(i_shift_right(i_load(p + 128), 16 * which + 2 * g), i_set(3));
    return i_add(low, i_shift_left(high, 4));
}

}  // namespace
