// Matrix products over panels: out[row][16 outputs] for one or many rows of activations, by one scheme.
//
// A panel is 16 rows of a matrix; lane r of every vector belongs to row r. Columns go in groups of 32:
//
//   Q4M  [16 scales f16 | 16 minimums f16 | 4 x 64 bytes of nibbles]     320 bytes a group     w = d * q + m    (Q4_1)
//   Q4   [16 scales f16 |                   4 x 64 bytes of nibbles]     288 bytes             w = d * (q - 8)  (Q4_0)
//   Q8   [16 scales f16 | 8 x 64 bytes of (q + 128)]                     544 bytes             w = d * q        (Q8_0)
//   F32  [16 floats] a column                                             64 bytes a column     w
//
//   64 bytes of nibbles j: lane r = row r's columns 4j..4j+3 in the low nibbles, 16+4j..16+4j+3 in the high ones.
//   64 bytes of bytes j:   lane r = row r's columns 4j..4j+3.
//
// Every output is one chain over the groups in column order (docs/en/numerics.md):
//   s = sum w * x, exact in int32;  acc = fma(float(s) * scale_x, d, acc);  with a minimum: acc = fma(m, scale_x *
//   sum_x, acc)
// A tile is one panel times kTile rows: the panel is unpacked once for all of them. The chain of an output is the same
// for every tile height, so one row and many rows give the same bits.
#pragma once
#include "ops.h"
#include "simd.h"

namespace {

#if defined(TG_ISA_AVX512)
constexpr int kTile = 8;  // rows whose accumulators, with one unpacked group, fit 32 registers
#else
constexpr int kTile = 4;
#endif

constexpr size_t group_bytes(int kind) { return kind == TG_Q4M ? 320 : kind == TG_Q4 ? 288 : 544; }

// Weights of a one-row product are read once a step: fetched past the outer caches, they leave there what is used again
// (the interpreter, activations, keys and values). Measured on a decode step of SmolLM2: products 15-20% faster.
inline void prefetch_group(const uint8_t* p, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i, 0, 0);
}

// int8 activations: T rows of `x`, starting at `row`, times one panel.
template <int kKind, int T>
inline void tile_int8(const uint8_t* w, const tg_rows& x, int row, f32x16* acc) {
    constexpr size_t kBytes = group_bytes(kKind);
    constexpr int kBias = kKind == TG_Q4 ? 3 : kKind == TG_Q8 ? kBytesBias : 0;  // stored weights are w + 2^kBias
    constexpr size_t kAhead =
        T == 1 ? 6 : 2;  // groups to prefetch: far for streams from memory, near for tiles in the cache
    const int groups = x.groups;
    const int8_t* q = x.q + (size_t)row * x.width;
    const size_t at = (size_t)row * groups;
    for (int g = 0; g < groups; g++, w += kBytes) {
        if (T == 1) prefetch_group(w + kAhead * kBytes, kBytes);
        i32x16 v[8];
        if (kKind == TG_Q8) {
            for (int j = 0; j < 8; j++) v[j] = i_load(w + 32 + j * 64);
        } else {
            const i32x16 low = i_set(0x0f0f0f0f);
            for (int j = 0; j < 4; j++) {
                i32x16 both = i_load(w + (kKind == TG_Q4M ? 64 : 32) + j * 64);
                v[j] = i_and(both, low);
                v[j + 4] = i_and(i_shift_right(both, 4), low);
            }
        }
        const f32x16 d = f_load_half((const uint16_t*)w);
        f32x16 m = d;
        if (kKind == TG_Q4M) m = f_load_half((const uint16_t*)w + 16);
#pragma GCC unroll 8
        for (int t = 0; t < T; t++) {
            const int8_t* xg = q + (size_t)t * x.width + g * TG_GROUP;
            i32x16 a = i_set(0), b = a;
            if (kBias) a = i_sub(a, i_shift_left(i_set(x.sum[at + (size_t)t * groups + g]), kBias));
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++) {
                a = kKind == TG_Q8 ? dot_bytes(a, v[j], xg + 4 * j) : dot_nibbles(a, v[j], xg + 4 * j);
                b = kKind == TG_Q8 ? dot_bytes(b, v[j + 4], xg + 16 + 4 * j)
                                   : dot_nibbles(b, v[j + 4], xg + 16 + 4 * j);
            }
            const f32x16 s = f_mul(i_to_float(i_add(a, b)), f_set(x.scale[at + (size_t)t * groups + g]));
            acc[t] = f_fma(s, d, acc[t]);
            if (kKind == TG_Q4M) acc[t] = f_fma(m, f_set(x.scaled_sum[at + (size_t)t * groups + g]), acc[t]);
        }
    }
}

// The weights of columns 4j+b (and 16+4j+b for nibbles) of a group, as floats: what the file's dequantised form would
// be.
template <int kKind>
inline f32x16 column(const uint8_t* w, int c) {
    if (kKind == TG_F32) return f_load((const float*)w + c * 16);
    const f32x16 d = f_load_half((const uint16_t*)w);
    if (kKind == TG_Q8) {
        i32x16 q = i_and(i_shift_right(i_load(w + 32 + c / 4 * 64), 8 * (c % 4)), i_set(255));
        return f_mul(d, i_to_float(i_add(q, i_set(-128))));
    }
    const int half = c / 16, j = c % 16 / 4, b = c % 4;
    i32x16 q = i_and(i_shift_right(i_load(w + (kKind == TG_Q4M ? 64 : 32) + j * 64), 8 * b + 4 * half), i_set(15));
    if (kKind == TG_Q4) return f_mul(d, i_to_float(i_add(q, i_set(-8))));
    return f_add(f_mul(d, i_to_float(q)), f_load_half((const uint16_t*)w + 16));
}

// float activations (float weights always; every kind in the exact mode): the same chain, one column at a time.
template <int kKind, int T>
inline void tile_float(const uint8_t* w, int cols, const tg_rows& x, int row, f32x16* acc) {
    constexpr int kStep = kKind == TG_F32 ? 1 : TG_GROUP;
    constexpr size_t kBytes = kKind == TG_F32 ? 64 : group_bytes(kKind);
    const float* data = x.data + (size_t)row * x.width;
    for (int g = 0; g < cols; g += kStep, w += kBytes) {
        for (int c = 0; c < kStep; c++) {
            const f32x16 v = column<kKind>(w, c);
            for (int t = 0; t < T; t++) acc[t] = f_fma(v, f_set(data[(size_t)t * x.width + g + c]), acc[t]);
        }
    }
}

template <int kKind, int T>
inline void panel_times_rows(const tg_linear_job* job, const tg_matrix& m, int panel, int row) {
    const uint8_t* w = m.data + (size_t)panel * m.panel_bytes;
    f32x16 acc[T];
    for (int t = 0; t < T; t++) acc[t] = f_set(0.0f);
    if constexpr (kKind == TG_F32) {
        tile_float<kKind, T>(w, m.cols, job->x, row, acc);
    } else {
        if (job->exact)
            tile_float<kKind, T>(w, m.cols, job->x, row, acc);
        else
            tile_int8<kKind, T>(w, job->x, row, acc);
    }
    const int num = m.rows - panel * 16 < 16 ? m.rows - panel * 16 : 16;
    for (int t = 0; t < T; t++) {
        float* out = job->out + (size_t)(row + t) * job->out_width + m.out_offset + panel * 16;
        if (num == 16) {
            f_store(out, job->add ? f_add(f_load(out), acc[t]) : acc[t]);
        } else {
            float v[16];
            f_store(v, acc[t]);
            for (int i = 0; i < num; i++) out[i] = job->add ? out[i] + v[i] : v[i];
        }
    }
}

template <int kKind>
inline void panels_times_rows(const tg_linear_job* job, const tg_matrix& m, int panel, int end, int row, int row_end) {
    for (; panel < end; panel++) {
        int r = row;
        for (; r + kTile <= row_end; r += kTile) panel_times_rows<kKind, kTile>(job, m, panel, r);
        if (r + kTile / 2 <= row_end) panel_times_rows<kKind, kTile / 2>(job, m, panel, r), r += kTile / 2;
        for (; r < row_end; r++) panel_times_rows<kKind, 1>(job, m, panel, r);
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
    switch (m.kind) {
        case TG_F32:
            return panels_times_rows<TG_F32>(job, m, panel, end, row, row_end);
        case TG_Q4:
            return panels_times_rows<TG_Q4>(job, m, panel, end, row, row_end);
        case TG_Q4M:
            return panels_times_rows<TG_Q4M>(job, m, panel, end, row, row_end);
        case TG_Q8:
            return panels_times_rows<TG_Q8>(job, m, panel, end, row, row_end);
    }
}

// One row to int8, by groups of 32: scale = max|x| / 127, q = x / scale to nearest, ties to even; a group of zeros
// stays zeros. q is never -128, for dot_bytes needs -q as well: not where a subnormal scale rounds down, nor where NaN
// hides the largest |x|, which over the scale may then be more than int32 holds.
void quantise(const tg_rows* x, int row) {
    const float* data = x->data + (size_t)row * x->width;
    int8_t* q = x->q + (size_t)row * x->width;
    const size_t at = (size_t)row * x->groups;
    for (int g = 0; g < x->groups; g++, data += TG_GROUP, q += TG_GROUP) {
        const f32x16 a = f_load(data), b = f_load(data + 16);
        const float scale = f_largest(f_max(f_abs(a), f_abs(b))) / 127.0f;
        int32_t sum = 0;
        if (scale > 0.0f) {
            const f32x16 most = f_set(127.0f), least = f_set(-127.0f);
            i_store_int8(q, f_to_int(f_min(f_max(f_div(a, f_set(scale)), least), most)));
            i_store_int8(q + 16, f_to_int(f_min(f_max(f_div(b, f_set(scale)), least), most)));
            for (int i = 0; i < TG_GROUP; i++) sum += q[i];
        } else {
            memset(q, 0, TG_GROUP);
        }
        x->scale[at + g] = scale;
        x->sum[at + g] = sum;
        x->scaled_sum[at + g] = scale * (float)sum;
    }
}

// One row of a matrix, dequantised: the embedding of token `id`, read from the panels that the head multiplies with.
template <int kKind>
inline void matrix_row(const tg_matrix* m, int id, float* out) {
    constexpr int kStep = kKind == TG_F32 ? 1 : TG_GROUP;
    constexpr size_t kBytes = kKind == TG_F32 ? 64 : group_bytes(kKind);
    const uint8_t* w = m->data + (size_t)(id / 16) * m->panel_bytes;
    for (int g = 0; g < m->cols; g += kStep, w += kBytes) {
        for (int c = 0; c < kStep; c++) {
            float v[16];
            f_store(v, column<kKind>(w, c));
            out[g + c] = v[id % 16];
        }
    }
}
void embed(const tg_matrix* m, int id, float* out) {
    switch (m->kind) {
        case TG_F32:
            return matrix_row<TG_F32>(m, id, out);
        case TG_Q4:
            return matrix_row<TG_Q4>(m, id, out);
        case TG_Q4M:
            return matrix_row<TG_Q4M>(m, id, out);
        case TG_Q8:
            return matrix_row<TG_Q8>(m, id, out);
    }
}

}  // namespace
