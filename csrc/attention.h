// Attention over KV pages, for one row or many, by one scheme.
//
// The positions a row sees are cut into spans of 256 *absolute* positions. A span gives a softmax partial: its largest
// score m, the sum l of exp(score - m), and o = sum of exp(score - m) * v. Partials merge from left to right. So a
// row's result depends on its own position and the cache alone, never on chunking, threads or its neighbours
// (docs/en/numerics.md, 2).
//
//   scores   lanes are 16 keys of a page; one chain over head_dim
//   values   lanes are 16 dimensions; one chain over the positions of the span
//
// A block is a few neighbouring rows of one KV head (they share every load of K and V), over all spans or over one.
#pragma once
#include "ops.h"
#include "simd.h"

namespace {

#if defined(TG_ISA_AVX512)
constexpr int kQueries = 6;  // query vectors that share a load
#else
constexpr int kQueries = 3;
#endif

template <bool kHalf>
inline f32x16 load16(const void* p, size_t at) {
    return kHalf ? f_load_half((const uint16_t*)p + at) : f_load((const float*)p + at);
}

struct Span {
    float* scores;  // [queries][256]: scores, then their exponentials
    float* m;       // [queries] largest score
    float* l;       // [queries] sum of exponentials
    float* o;       // [queries][head_dim]
};

// N queries q[i] (head_dim floats each) against positions [start, start + count[i]) of one span.
template <bool kHalf, int N>
inline void span_partial(const tg_attention_job* job, const int32_t* table, int kv_head, int start,
                         const float* const* q, const int* count, const Span& out) {
    const int dim = job->head_dim;
    const size_t block = (size_t)2 * TG_PAGE * dim;
    int longest = 0, shortest = TG_SPAN;
    for (int i = 0; i < N; i++) {
        if (count[i] > longest) longest = count[i];
        if (count[i] < shortest) shortest = count[i];
    }
    f32x16 largest[N];
    for (int i = 0; i < N; i++) largest[i] = f_set(-INFINITY);
    for (int p = 0; p < longest; p += TG_PAGE) {
        const size_t k = ((size_t)table[(start + p) / TG_PAGE] * job->kv_heads + kv_head) * block;
        f32x16 s[N];
        for (int i = 0; i < N; i++) s[i] = f_set(0.0f);
        for (int d = 0; d < dim; d++) {
            const f32x16 keys = load16<kHalf>(job->pages, k + (size_t)d * TG_PAGE);
#pragma GCC unroll 8
            for (int i = 0; i < N; i++) s[i] = f_fma(keys, f_set(q[i][d]), s[i]);
        }
        for (int i = 0; i < N; i++) {
            int seen = count[i] - p;
            seen = seen < 0 ? 0 : seen > TG_PAGE ? TG_PAGE : seen;
            s[i] = f_keep_first(f_mul(s[i], f_set(job->scale)), seen, -INFINITY);
            largest[i] = f_max(s[i], largest[i]);  // NaN is never the largest
            f_store(out.scores + i * TG_SPAN + p, s[i]);
        }
    }
    for (int i = 0; i < N; i++) {
        out.m[i] = f_largest(largest[i]);
        f32x16 sum = f_set(0.0f);
        for (int p = 0; p < count[i]; p += TG_PAGE) {
            float* s = out.scores + i * TG_SPAN + p;
            const f32x16 e = f_exp(f_sub(f_load(s), f_set(out.m[i])));
            f_store(s, e);
            sum = f_add(sum, e);
        }
        out.l[i] = f_sum(sum);
    }
    for (int d = 0; d < dim; d += 32) {  // 32 dimensions at a time: 2 N chains in registers
        f32x16 a[N], b[N];
        for (int i = 0; i < N; i++) a[i] = b[i] = f_set(0.0f);
        const bool two = d + 16 < dim;
        size_t v = 0;
        for (int p = 0; p < longest; p++) {
            if (p % TG_PAGE == 0) {
                v = ((size_t)table[(start + p) / TG_PAGE] * job->kv_heads + kv_head) * block + block / 2 + d;
            }
            const f32x16 va = load16<kHalf>(job->pages, v + (size_t)(p % TG_PAGE) * dim);
            const f32x16 vb = two ? load16<kHalf>(job->pages, v + (size_t)(p % TG_PAGE) * dim + 16) : va;
            if (p < shortest) {
#pragma GCC unroll 8
                for (int i = 0; i < N; i++) {
                    const f32x16 weight = f_set(out.scores[i * TG_SPAN + p]);
                    a[i] = f_fma(va, weight, a[i]), b[i] = f_fma(vb, weight, b[i]);
                }
            } else {  // the ragged end: a row never touches a position it cannot see
                for (int i = 0; i < N; i++) {
                    if (p >= count[i]) continue;
                    const f32x16 weight = f_set(out.scores[i * TG_SPAN + p]);
                    a[i] = f_fma(va, weight, a[i]), b[i] = f_fma(vb, weight, b[i]);
                }
            }
        }
        for (int i = 0; i < N; i++) {
            f_store(out.o + i * dim + d, a[i]);
            if (two) f_store(out.o + i * dim + d + 16, b[i]);
        }
    }
}

// (m, l, o) <- merge of (m, l, o) with the partial to its right; o has head_dim floats.
inline void merge(float* m, float* l, float* o, float pm, float pl, const float* po, int dim) {
    const float top = *m > pm ? *m : pm;
    float scale[16] = {*m - top, pm - top};
    f_store(scale, f_exp(f_load(scale)));
    *l = fmaf(*l, scale[0], pl * scale[1]);
    for (int d = 0; d < dim; d += 16) {
        f_store(o + d, f_fma(f_load(o + d), f_set(scale[0]), f_mul(f_load(po + d), f_set(scale[1]))));
    }
    *m = top;
}

template <bool kHalf>
inline void partial_of(const tg_attention_job* job, const int32_t* table, int kv_head, int start, const float* const* q,
                       const int* count, int num, Span out) {
    switch (num) {
        case 1:
            return span_partial<kHalf, 1>(job, table, kv_head, start, q, count, out);
        case 2:
            return span_partial<kHalf, 2>(job, table, kv_head, start, q, count, out);
        case 3:
            return span_partial<kHalf, 3>(job, table, kv_head, start, q, count, out);
#if defined(TG_ISA_AVX512)
        case 4:
            return span_partial<kHalf, 4>(job, table, kv_head, start, q, count, out);
        case 5:
            return span_partial<kHalf, 5>(job, table, kv_head, start, q, count, out);
        case 6:
            return span_partial<kHalf, 6>(job, table, kv_head, start, q, count, out);
#endif
    }
}

// block = (row block * kv_heads + kv_head) * max(spans, 1) + span
void attend(const tg_attention_job* job, int block) {
    const int spans = job->spans > 0 ? job->spans : 1, span = block % spans, kv_head = block / spans % job->kv_heads;
    const int first = block / spans / job->kv_heads * job->rows_per_block, dim = job->head_dim;
    const int end = first + job->rows_per_block < job->num_rows ? first + job->rows_per_block : job->num_rows;
    const int group = job->heads / job->kv_heads, num = (end - first) * group;
    float scores[kQueries * TG_SPAN], o[kQueries * TG_MAX_HEAD_DIM], m[kQueries], l[kQueries];
    float total_m[kQueries], total_l[kQueries];
    const float* q[kQueries];
    int count[kQueries], row[kQueries], head[kQueries];
    for (int at = 0; at < num;) {  // up to kQueries (row, head) pairs of one sequence at a time
        int n = 0, last = 0;
        for (; at < num && n < kQueries; at++, n++) {
            row[n] = first + at / group, head[n] = kv_head * group + at % group;
            if (n > 0 && job->sequence[row[n]] != job->sequence[row[0]]) break;
            q[n] = job->q + (size_t)row[n] * job->q_stride + head[n] * dim;
            if (job->position[row[n]] > last) last = job->position[row[n]];
        }
        const int32_t* table = job->page_table + (size_t)job->sequence[row[0]] * job->table_width;
        const int from = job->spans > 0 ? span * TG_SPAN : 0;
        for (int start = from; start <= last && (job->spans == 0 || start == from); start += TG_SPAN) {
            for (int i = 0; i < n; i++) {
                const int seen = job->position[row[i]] + 1 - start;
                count[i] = seen < 0 ? 0 : seen > TG_SPAN ? TG_SPAN : seen;
            }
            if (job->half)
                partial_of<true>(job, table, kv_head, start, q, count, n, {scores, m, l, o});
            else
                partial_of<false>(job, table, kv_head, start, q, count, n, {scores, m, l, o});
            for (int i = 0; i < n; i++) {
                if (count[i] == 0) continue;
                const size_t pair = (size_t)row[i] * job->heads + head[i];
                if (job->spans > 0) {
                    float* partial = job->partial + (pair * job->spans + span) * (dim + 2);
                    partial[0] = m[i], partial[1] = l[i];
                    memcpy(partial + 2, o + i * dim, (size_t)dim * 4);
                } else if (start == 0) {
                    total_m[i] = m[i], total_l[i] = l[i];
                    memcpy(job->out + pair * dim, o + i * dim, (size_t)dim * 4);
                } else {
                    merge(&total_m[i], &total_l[i], job->out + pair * dim, m[i], l[i], o + i * dim, dim);
                }
            }
        }
        if (job->spans > 0) continue;
        for (int i = 0; i < n; i++) {
            float* out = job->out + ((size_t)row[i] * job->heads + head[i]) * dim;
            for (int d = 0; d < dim; d += 16) f_store(out + d, f_div(f_load(out + d), f_set(total_l[i])));
        }
    }
}

// Where spans were separate blocks: the partials of one (row, head), merged from left to right.
void attend_merge(const tg_attention_job* job, int row_head) {
    const int dim = job->head_dim, row = row_head / job->heads;
    const float* partial = job->partial + (size_t)row_head * job->spans * (dim + 2);
    float* out = job->out + (size_t)row_head * dim;
    float m = partial[0], l = partial[1];
    memcpy(out, partial + 2, (size_t)dim * 4);
    for (int s = 1; s * TG_SPAN <= job->position[row]; s++) {
        const float* next = partial + (size_t)s * (dim + 2);
        merge(&m, &l, out, next[0], next[1], next + 2, dim);
    }
    for (int d = 0; d < dim; d += 16) f_store(out + d, f_div(f_load(out + d), f_set(l)));
}

}  // namespace
