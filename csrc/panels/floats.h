// Floats as they are: a piece is one column, 16 numbers. They multiply float activations in every mode.
//
//   F32   [16 floats]       F16   [16 float16]       BF16   [16 upper halves of a float]
#pragma once
#include "panel.h"

namespace {

template <int kSize>
struct FloatPanel {
    static constexpr bool kIsFloat = true;
    static constexpr int kColumns = 1, kFileBytes = kSize, kBytes = 16 * kSize;
    static void pack(const Blocks& blocks, uint8_t* piece) {
        for (int lane = 0; lane < 16; lane++) memcpy(piece + lane * kSize, blocks.row[lane], kSize);
    }
};
struct F32Panel : FloatPanel<4> {
    static constexpr const char* kName = "F32";
    static f32x16 column(const uint8_t* piece) { return f_load((const float*)piece); }
};
struct F16Panel : FloatPanel<2> {
    static constexpr const char* kName = "F16";
    static f32x16 column(const uint8_t* piece) { return half_at(piece); }
};
struct BF16Panel : FloatPanel<2> {
    static constexpr const char* kName = "BF16";
    static f32x16 column(const uint8_t* piece) { return f_load_bfloat((const uint16_t*)piece); }
};

}  // namespace
