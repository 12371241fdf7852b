#include "pack.h"

#include <cstring>

namespace tokenglass {
namespace {

const FileFormat kFormats[] = {
    {"F32", 1, 4, TG_F32},   {"F16", 1, 2, TG_F32},    {"BF16", 1, 2, TG_F32},
    {"Q4_0", 32, 18, TG_Q4}, {"Q4_1", 32, 20, TG_Q4M}, {"Q8_0", 32, 34, TG_Q8},
};

float from_half(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 0x3ff;
    uint32_t bits;
    float value = (float)mantissa * 5.9604644775390625e-8f;  // subnormal: units of 2^-24
    if (exponent == 0) {
        memcpy(&bits, &value, 4);
        bits |= sign;
    } else {
        bits = sign | (exponent == 31 ? 0x7f800000u | mantissa << 13 : (exponent + 112) << 23 | mantissa << 13);
    }
    memcpy(&value, &bits, 4);
    return value;
}

float value_at(const FileFormat& format, const uint8_t* row, int c) {
    float value;
    if (format.bytes == 4) {
        memcpy(&value, row + (size_t)c * 4, 4);
        return value;
    }
    uint16_t half;
    memcpy(&half, row + (size_t)c * 2, 2);
    if (format.name[0] == 'F') return from_half(half);
    const uint32_t bits = (uint32_t)half << 16;  // bfloat16 is the upper half of a float32
    memcpy(&value, &bits, 4);
    return value;
}

}  // namespace

const FileFormat* find_format(const char* name) {
    for (const auto& format : kFormats)
        if (strcmp(format.name, name) == 0) return &format;
    return nullptr;
}

size_t panel_bytes(tg_kind kind, int cols) {
    switch (kind) {
        case TG_Q4:
            return (size_t)cols / TG_GROUP * 288;
        case TG_Q4M:
            return (size_t)cols / TG_GROUP * 320;
        case TG_Q8:
            return (size_t)cols / TG_GROUP * 544;
        default:
            return (size_t)cols * 64;
    }
}

void pack_panel(const FileFormat& format, const uint8_t* source, int rows, int cols, const int32_t* order, int panel,
                uint8_t* out) {
    const size_t row_bytes = (size_t)cols / format.values * format.bytes;
    memset(out, 0, panel_bytes(format.kind, cols));
    for (int lane = 0; lane < TG_LANES && panel * TG_LANES + lane < rows; lane++) {
        const int row = panel * TG_LANES + lane;
        const uint8_t* from = source + row_bytes * (order ? order[row] : row);
        if (format.kind == TG_F32) {
            for (int c = 0; c < cols; c++) {
                const float value = value_at(format, from, c);
                memcpy(out + ((size_t)c * TG_LANES + lane) * 4, &value, 4);
            }
            continue;
        }
        const size_t group = panel_bytes(format.kind, TG_GROUP);
        const int scales = format.kind == TG_Q4M ? 2 : 1, words = format.kind == TG_Q8 ? 8 : 4;
        const uint32_t bias = format.kind == TG_Q8 ? 0x80808080u : 0;  // signed bytes are stored + 128
        for (int g = 0; g < cols / TG_GROUP; g++, from += format.bytes) {
            uint8_t* to = out + g * group;
            for (int s = 0; s < scales; s++) memcpy(to + s * 32 + lane * 2, from + s * 2, 2);
            for (int j = 0; j < words; j++) {
                uint32_t word;
                memcpy(&word, from + scales * 2 + j * 4, 4);
                word ^= bias;
                memcpy(to + scales * 32 + j * 64 + lane * 4, &word, 4);
            }
        }
    }
    if (format.kind == TG_Q8) {  // rows past the end: scale 0, bytes 0 + 128
        const int used = rows - panel * TG_LANES;
        for (int lane = used < 0 ? 0 : used; lane < TG_LANES; lane++)
            for (int g = 0; g < cols / TG_GROUP; g++)
                for (int j = 0; j < 8; j++) memset(out + (size_t)g * 544 + 32 + j * 64 + lane * 4, 0x80, 4);
    }
}

}  // namespace tokenglass
