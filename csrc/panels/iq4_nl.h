// Four bits that choose from a table of 16 weights, and one scale for 32 columns.
//
//   IQ4_NL   [16 d f16 | 4 x 64 bytes of nibbles]     288 bytes     w = d * table[q]
#pragma once
#include "q4.h"

namespace {

struct IQ4_NLPanel : Q4_0Panel {
    static constexpr const char* kName = "IQ4_NL";
    static constexpr int kBias = 128;
    static constexpr bool kIsWide = true;
    static void codes(const uint8_t* piece, int, i32x16* v) {
        alignas(16) static const uint8_t table[16] = {1,   24,  45,  63,  79,  93,  106, 118,  // each + 128
                                                      129, 141, 153, 166, 181, 197, 217, 241};
        nibbles(piece + 32, v);
        for (int j = 0; j < 8; j++) v[j] = i_lookup(table, v[j]);
    }
};

}  // namespace
