// Matrix products over panels: out[row][16 outputs] for one or many rows of activations, by one scheme for every kind.
//
// What a panel looks like is said in panels/panel.h and, kind by kind, in its neighbours. Columns go in groups of 32.
// Every output is one chain over the groups in column order (docs/en/numerics.md), x being q + zero of quantise.h:
//
//   s = sum (code - bias) * x, exact in int32;  acc = fma(float(s) * scale_x, d, acc)
//   with a minimum also                         acc = fma(m, scale_x * sum_x, acc)
//   with two scales a group                     s = scale[0] * s[0] + scale[1] * s[1], exact too; minimums alike
//
// A tile is one panel times T rows: a group is unpacked once for all of them. The chain of an output is the same for
// every tile height, so one row and many rows give the same bits.
#pragma once
#include "ops.h"
#include "panels/panel.h"

namespace {

#if defined(TG_ISA_AVX512)
constexpr int kTile = TG_TILE;  // accumulators of 8 rows and one unpacked group fit 32 registers
#else
constexpr int kTile = 4;
#endif

// Weights of a one-row product are read once a step: fetched past the outer caches, they leave there what is used again
// (the interpreter, activations, keys and values). Measured on a decode step of SmolLM2: products 15-20% faster.
inline void prefetch(const uint8_t* p, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i, 0, 0);
}

constexpr int log2_of(int power) { return power <= 1 ? 0 : 1 + log2_of(power / 2); }

template <class K>
constexpr int kStoredBias = K::kIsWide ? kBytesBias : K::kBias;

// a + sum of code * x over half a group.
template <class K>
inline i32x16 half_dot(i32x16 a, const i32x16* v, const int8_t* x) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) a = K::kIsWide ? dot_bytes(a, v[j], x + 4 * j) : dot_nibbles(a, v[j], x + 4 * j);
    return a;
}

// Sum of the stored codes of half a group. Two codes that are not wide are below 128 together.
template <class K>
inline i32x16 sum_of_codes(const i32x16* v) {
    alignas(16) static constexpr int8_t kOnes[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    if constexpr (K::kIsWide) return half_dot<K>(i_set(0), v, kOnes);
    return dot_nibbles(dot_nibbles(i_set(0), i_add(v[0], v[1]), kOnes), i_add(v[2], v[3]), kOnes);
}

// Where the sum of products starts: the codes hold a bias.
template <class K>
inline i32x16 without_bias(int32_t sum_x) {
    constexpr int kShift = log2_of(kStoredBias<K>);
    return kShift ? i_sub(i_set(0), i_shift_left(i_set(sum_x), kShift)) : i_set(0);
}

// What stored codes bring along, in pairs of 16 bits: times (zero, sum) of a group of x it is where the sum of products
// starts, since sum (code - bias) * (q + zero) = sum of codes * zero - bias * sum (q + zero) + sum code * q.
template <class K>
inline i32x16 start_of(i32x16 sum_of_codes) {
    return i_add(i_and(sum_of_codes, i_set(0xffff)), i_set(-kStoredBias<K> * 65536));
}
inline i32x16 pair_at(const void* zero_and_sum) { return i_set(four_bytes((const int8_t*)zero_and_sum)); }

// One group: int8 activations of T rows times the unpacked codes of one panel. Without kHasZero all of them have zero
// 0, and the codes need not be summed: the same sums, sooner.
template <class K, int T, bool kHasZero>
inline void group_times_rows(const i32x16* v, const Scales& s, const tg_group* rows, f32x16* acc) {
    i32x16 first = i_set(0), second = i_set(0);
    if (kHasZero) first = sum_of_codes<K>(v), second = sum_of_codes<K>(v + 4);
    const i32x16 start = start_of<K>(i_add(first, second));
    const i32x16 half_start[2] = {start_of<K>(first), start_of<K>(second)};
#pragma GCC unroll 8
    for (int t = 0; t < T; t++) {
        const tg_group& group = rows[t];
        const f32x16 scale_x = f_set(group.scale);
        if constexpr (K::kHasHalves) {
            i32x16 dot = i_set(0), below = i_set(0);
            for (int h = 0; h < 2; h++) {
                const i32x16 from = i_mul_pairs(half_start[h], pair_at(&group.half[h]));
                dot = i_add(dot, i_mul(s.scale[h], half_dot<K>(from, v + 4 * h, group.q + 16 * h)));
                if (K::kHasMinimum) below = i_add(below, i_mul(s.minimum[h], i_set(group.half[h].sum)));
            }
            acc[t] = f_fma(f_mul(i_to_float(dot), scale_x), s.d, acc[t]);
            if (K::kHasMinimum) acc[t] = f_fma(f_mul(i_to_float(below), scale_x), s.m, acc[t]);
        } else {
            const i32x16 from = kHasZero ? i_mul_pairs(start, pair_at(&group.all)) : without_bias<K>(group.sum);
            const i32x16 dot = i_add(half_dot<K>(from, v, group.q), half_dot<K>(i_set(0), v + 4, group.q + 16));
            acc[t] = f_fma(f_mul(i_to_float(dot), scale_x), s.d, acc[t]);
            if (K::kHasMinimum) acc[t] = f_fma(s.m, f_set(group.scaled_sum), acc[t]);
        }
    }
}

// int8 activations: T rows of `x`, starting at `row`, times one panel.
template <class K, int T>
inline void tile_int8(const uint8_t* w, const tg_rows& x, int row, f32x16* acc) {
    constexpr int kGroups = K::kColumns / TG_GROUP;
    constexpr size_t kGroupBytes = K::kBytes / kGroups, kAhead = 16 * kGroupBytes;
    const tg_group* rows = tg_group_of(&x, row, 0);
    i32x16 v[8];
    Scales s;
    for (int g = 0; g < x.groups; w += K::kBytes) {
        for (int k = 0; k < kGroups; k++, g++, rows += TG_TILE) {
            if (T == 1) prefetch(w + k * kGroupBytes + kAhead, kGroupBytes);
            K::codes(w, k, v);
            K::scales(w, k, s);
            int zeros = 0;
            for (int t = 0; t < T; t++) zeros |= rows[t].all.zero;
            if (zeros)
                group_times_rows<K, T, true>(v, s, rows, acc);
            else
                group_times_rows<K, T, false>(v, s, rows, acc);
        }
    }
}

// The weights of one group as floats [32 columns][16 rows]: what the file's dequantised form would be.
template <class K>
inline void group_weights(const uint8_t* piece, int g, float (*w)[16]) {
    i32x16 v[8];
    Scales s;
    K::codes(piece, g, v);
    K::scales(piece, g, s);
    for (int h = 0; h < 2; h++) {
        f32x16 d = s.d, m = s.m;
        if constexpr (K::kHasHalves) {
            d = f_mul(d, i_to_float(s.scale[h]));
            if constexpr (K::kHasMinimum) m = f_mul(m, i_to_float(s.minimum[h]));
        }
        for (int c = 16 * h; c < 16 * h + 16; c++) {
            const i32x16 q = i_sub(i_and(i_shift_right(v[c / 4], c % 4 * 8), i_set(255)), i_set(K::kBias));
            f32x16 value = f_mul(d, i_to_float(q));
            if constexpr (K::kHasMinimum) value = f_add(value, m);
            f_store(w[c], value);
        }
    }
}

// float activations (float weights always; every kind in the exact mode): the same chain, one column at a time.
template <class K, int T>
inline void tile_float(const uint8_t* w, int cols, const tg_rows& x, int row, f32x16* acc) {
    const float* data = x.data + (size_t)row * x.width;
    if constexpr (K::kIsFloat) {
        for (int c = 0; c < cols; c++, w += K::kBytes) {
            if (T == 1) prefetch(w + 2048, K::kBytes);
            const f32x16 v = K::column(w);
#pragma GCC unroll 8
            for (int t = 0; t < T; t++) acc[t] = f_fma(v, f_set(data[(size_t)t * x.width + c]), acc[t]);
        }
    } else {
        float v[TG_GROUP][16];
        for (int g = 0; g < cols / TG_GROUP; g++) {
            group_weights<K>(w + g * TG_GROUP / K::kColumns * (size_t)K::kBytes, g % (K::kColumns / TG_GROUP), v);
            for (int c = 0; c < TG_GROUP; c++)
                for (int t = 0; t < T; t++)
                    acc[t] = f_fma(f_load(v[c]), f_set(data[(size_t)t * x.width + g * TG_GROUP + c]), acc[t]);
        }
    }
}

template <class K, int T>
inline void panel_times_rows(const tg_linear_job* job, const tg_matrix* m, int panel, int row) {
    const uint8_t* w = m->data + (size_t)panel * m->panel_bytes;
    f32x16 acc[T];
    for (int t = 0; t < T; t++) acc[t] = f_set(0.0f);
    if constexpr (K::kIsFloat) {
        tile_float<K, T>(w, m->cols, job->x, row, acc);
    } else {
        if (job->exact)
            tile_float<K, T>(w, m->cols, job->x, row, acc);
        else
            tile_int8<K, T>(w, job->x, row, acc);
    }
    const int num = m->rows - panel * 16 < 16 ? m->rows - panel * 16 : 16;
    for (int t = 0; t < T; t++) {
        float* out = job->out + (size_t)(row + t) * job->out_width + m->out_offset + panel * 16;
        if (m->bias) acc[t] = f_add(acc[t], f_load(m->bias + panel * 16));
        if (num == 16) {
            f_store(out, job->add ? f_add(f_load(out), acc[t]) : acc[t]);
        } else {
            float v[16];
            f_store(v, acc[t]);
            for (int i = 0; i < num; i++) out[i] = job->add ? out[i] + v[i] : v[i];
        }
    }
}

// Panels in the inner loop: the tile's activations stay in the first cache, and each row's outputs are one stretch.
template <class K, int T>
inline void tile_times_panels(const tg_linear_job* job, const tg_matrix* m, int panel, int panel_end, int row) {
    for (; panel < panel_end; panel++) panel_times_rows<K, T>(job, m, panel, row);
}

template <class K>
void panels_times_rows(const tg_linear_job* job, const tg_matrix* m, int panel, int panel_end, int row, int row_end) {
    for (; row + kTile <= row_end; row += kTile) tile_times_panels<K, kTile>(job, m, panel, panel_end, row);
    if (row + kTile / 2 <= row_end) tile_times_panels<K, kTile / 2>(job, m, panel, panel_end, row), row += kTile / 2;
    for (; row < row_end; row++) tile_times_panels<K, 1>(job, m, panel, panel_end, row);
}

// Sixteen rows of the file, `num_blocks` blocks each, into a panel.
template <class K>
void pack(const uint8_t* const* rows, int num_blocks, uint8_t* panel) {
    Blocks blocks;
    memcpy(blocks.row, rows, sizeof blocks.row);
    for (int i = 0; i < num_blocks; i++, panel += K::kBytes) {
        K::pack(blocks, panel);
        for (auto& row : blocks.row) row += K::kFileBytes;
    }
}

// One row of a matrix, dequantised: the embedding of token `id`, read from the panels that the head multiplies with.
template <class K>
void embed(const tg_matrix* m, int id, float* out) {
    const uint8_t* w = m->data + (size_t)(id / 16) * m->panel_bytes;
    if constexpr (K::kIsFloat) {
        float v[16];
        for (int c = 0; c < m->cols; c++, w += K::kBytes) f_store(v, K::column(w)), out[c] = v[id % 16];
    } else {
        float v[TG_GROUP][16];
        for (int g = 0; g < m->cols / TG_GROUP; g++) {
            group_weights<K>(w + g * TG_GROUP / K::kColumns * (size_t)K::kBytes, g % (K::kColumns / TG_GROUP), v);
            for (int c = 0; c < TG_GROUP; c++) out[g * TG_GROUP + c] = v[c][id % 16];
        }
    }
}

void linear(const tg_linear_job* job, int block) {
    const int panel_block = block / job->row_blocks, row_block = block % job->row_blocks;
    int i = 0;
    while (i + 1 < job->num_matrices && job->matrices[i + 1].first_block <= panel_block) i++;
    const tg_matrix& m = job->matrices[i];
    const int panels = (m.rows + 15) / 16, panel = (panel_block - m.first_block) * job->panels_per_block;
    const int end = panel + job->panels_per_block < panels ? panel + job->panels_per_block : panels;
    const int row = row_block * job->rows_per_block;
    const int row_end = row + job->rows_per_block < job->num_rows ? row + job->rows_per_block : job->num_rows;
    m.kind->linear(job, &m, panel, end, row, row_end);
}

}  // namespace
