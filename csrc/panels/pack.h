// How blocks of the file become a piece of a panel: 16 blocks at once, one of each row, a word of four bytes in each
// lane. Whatever `codes` of a kind unpacks by shifts and masks is put together here by the same shifts.
#pragma once
#include <stdint.h>
#include <string.h>

namespace {

typedef uint32_t Words __attribute__((vector_size(64)));  // lane r: four bytes of row r, the first the lowest

struct Blocks {
    const uint8_t* row[16];

    void words(int at, Words* w, int n) const {  // n words of each block, from byte `at` on
        uint32_t v[8][16];
        for (int lane = 0; lane < 16; lane++)
            for (int j = 0; j < n; j++) memcpy(&v[j][lane], row[lane] + at + 4 * j, 4);
        memcpy(w, v, (size_t)n * sizeof(Words));
    }
    void put_halves(uint8_t* p, int at) const {  // a float16 of each block
        for (int lane = 0; lane < 16; lane++) memcpy(p + lane * 2, row[lane] + at, 2);
    }
    void put_words(uint8_t* p, int at, int n, uint32_t flipped = 0) const {
        Words w[8];
        words(at, w, n);
        for (int j = 0; j < n; j++) w[j] ^= flipped;
        memcpy(p, w, (size_t)n * sizeof(Words));
    }
};

// Codes of a group are the bits from `shift` on in each byte of eight words, columns 4j..4j+3 in word j.
inline void put_nibbles(uint8_t* p, const Words* w, int shift) {
    for (int j = 0; j < 4; j++) {
        const Words both = (w[j] >> shift & 0x0f0f0f0f) | (w[j + 4] >> shift & 0x0f0f0f0f) << 4;
        memcpy(p + j * 64, &both, 64);
    }
}
inline void put_bit_pairs(uint8_t* p, const Words* w, int shift) {
    for (int h = 0; h < 2; h++) {
        Words pairs = w[4 * h] >> shift & 0x03030303;
        for (int j = 1; j < 4; j++) pairs |= (w[4 * h + j] >> shift & 0x03030303) << 2 * j;
        memcpy(p + h * 64, &pairs, 64);
    }
}
inline void put_bits(uint8_t* p, const Words* w, int shift) {
    Words bits = w[0] >> shift & 0x01010101;
    for (int j = 1; j < 8; j++) bits |= (w[j] >> shift & 0x01010101) << j;
    memcpy(p, &bits, 64);
}

// Sixteen numbers of 6 bits in 12 bytes a lane: the low four bits of `first` and `second`, eight each, then the high
// two of both. (The file's own order would need a case for each half of them.)
inline void put_six_bits(uint8_t* p, const Words* first, const Words* second) {
    Words packed[3] = {};
    for (int i = 0; i < 8; i++) {
        packed[0] |= (first[i] & 15) << 4 * i, packed[1] |= (second[i] & 15) << 4 * i;
        packed[2] |= (first[i] >> 4) << 2 * i | (second[i] >> 4) << (16 + 2 * i);
    }
    memcpy(p, packed, sizeof packed);
}

}  // namespace
