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
#include "kv_page.h"

namespace {

#if defined(TG_ISA_AVX512)
constexpr int kQueries = 12;  // query vectors that share a load: with two vectors of keys or values 24 chains
#else
constexpr int kQueries = 3;
#endif
// How many of `most` vectors each query takes at a time: few queries are few chains, and the multipliers need several.
constexpr int vectors_for(int queries, int most) { return 2 * kQueries / queries < most ? 2 : most; }

struct Span {
    float* scores;  // [queries][256]: scores, then their exponentials
    float* m;       // [queries] largest score
    float* l;       // [queries] sum of exponentials
    float* o;       // [queries][head_dim]
};

// Queries and what they see of one span: positions [from, end) counted from its start, none where from >= end.
struct Queries {
    float q[kQueries][TG_MAX_HEAD_DIM];
    int from[kQueries], end[kQueries];
};

// s[i][j] = query i times the 16 keys of page j. K of Q8: a chain for each 32 dimensions, times their scale.
template <int kKind, int N, int P>
inline void scores_of(const uint8_t* const* k, int dim, const float (*q)[TG_MAX_HEAD_DIM], f32x16 (*s)[P]) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < P; j++) s[i][j] = f_set(0.0f);
    const int step = kKind == TG_KV_Q8 ? (int)kGroup : dim;
    for (int from = 0; from < dim; from += step) {
        const int end = from + step < dim ? from + step : dim;
        f32x16 part[N][P];
        for (int i = 0; i < N; i++)
            for (int j = 0; j < P; j++) part[i][j] = f_set(0.0f);
        for (int d = from; d < end; d++) {
            f32x16 keys[P];
            for (int j = 0; j < P; j++) keys[j] = load_values<kKind>(k[j], (size_t)d * TG_PAGE);
#pragma GCC unroll 12
            for (int i = 0; i < N; i++)
#pragma GCC unroll 2
                for (int j = 0; j < P; j++) part[i][j] = f_fma(keys[j], f_set(q[i][d]), part[i][j]);
        }
        for (int i = 0; i < N; i++) {
            for (int j = 0; j < P; j++) {
                if (kKind != TG_KV_Q8)
                    s[i][j] = part[i][j];
                else
                    s[i][j] = f_fma(part[i][j], f_load_half(scales_at(k[j], dim, from)), s[i][j]);
            }
        }
    }
}

// o[i][0..16V) += weight * value over positions [from, end) of a span; V vectors of 16 dimensions.
template <int kKind, int N, int V>
inline void add_values(const uint8_t* const* pages, size_t at, int dim, int from, int end, const float* weights,
                       float* o) {
    if (from >= end) return;
    f32x16 a[N][V], v[V];
#pragma GCC unroll 12
    for (int i = 0; i < N; i++)
#pragma GCC unroll 4
        for (int j = 0; j < V; j++) a[i][j] = f_load(o + i * dim + 16 * j);
    for (int p = from; p < end; p++) {
#pragma GCC unroll 4
        for (int j = 0; j < V; j++)
            v[j] = load_values<kKind>(pages[p / TG_PAGE] + at, (size_t)(p % TG_PAGE) * dim + 16 * j);
#pragma GCC unroll 12
        for (int i = 0; i < N; i++) {
            const f32x16 weight = f_set(weights[i * TG_SPAN + p]);
#pragma GCC unroll 4
            for (int j = 0; j < V; j++) a[i][j] = f_fma(v[j], weight, a[i][j]);
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < N; i++)
#pragma GCC unroll 4
        for (int j = 0; j < V; j++) f_store(o + i * dim + 16 * j, a[i][j]);
}

// o[i][d..] = sum of weight * value over the positions that query i sees; V vectors of 16 dimensions from d on.
template <int kKind, int N, int V>
inline void values_of(const tg_attention_job* job, const uint8_t* const* pages, const Queries& in, int d,
                      const float* weights, float* o) {
    const int dim = job->head_dim;
    const size_t at = (size_t)job->block_bytes / 2 + value_bytes(kKind) * d;
    int first = TG_SPAN, last = 0, all_from = 0, all_end = TG_SPAN;  // seen by some query, by all
    for (int i = 0; i < N; i++) {
        first = in.from[i] < first ? in.from[i] : first, all_from = in.from[i] > all_from ? in.from[i] : all_from;
        last = in.end[i] > last ? in.end[i] : last, all_end = in.end[i] < all_end ? in.end[i] : all_end;
    }
    if (all_end < all_from) all_end = all_from;
    constexpr int kScaled = kKind == TG_KV_Q8 ? N * TG_SPAN : 1;
    float scaled[kScaled];
    if (kKind == TG_KV_Q8) {
        for (int p = first / TG_PAGE * TG_PAGE; p < last; p += TG_PAGE) {
            const f32x16 scale = f_load_half(scales_at(pages[p / TG_PAGE] + job->block_bytes / 2, dim, d));
            for (int i = 0; i < N; i++)
                f_store(scaled + i * TG_SPAN + p, f_mul(f_load(weights + i * TG_SPAN + p), scale));
        }
        weights = scaled;
    }
    // The ragged ends query by query: a row never touches a position it cannot see.
    for (int i = 0; i < N; i++) {
        float* own = o + i * dim + d;
        for (int j = 0; j < V; j++) f_store(own + 16 * j, f_set(0.0f));
        add_values<kKind, 1, V>(pages, at, dim, in.from[i], in.end[i] < all_from ? in.end[i] : all_from,
                                weights + i * TG_SPAN, own);
    }
    add_values<kKind, N, V>(pages, at, dim, all_from, all_end, weights, o + d);
    for (int i = 0; i < N; i++)
        add_values<kKind, 1, V>(pages, at, dim, in.from[i] > all_end ? in.from[i] : all_end, in.end[i],
                                weights + i * TG_SPAN, o + i * dim + d);
}

// Query i times the keys at p..p+15: scaled, capped, -infinity where it cannot see; stored, and the largest kept.
inline void take_scores(const tg_attention_job* job, const Queries& in, const Span& out, int i, int p, f32x16 s,
                        f32x16* largest) {
    s = f_mul(s, f_set(job->scale));
    if (job->soft_cap > 0.0f) s = f_mul(f_set(job->soft_cap), f_tanh(f_div(s, f_set(job->soft_cap))));
    float* scores = out.scores + i * TG_SPAN + p;
    const int end = in.end[i] - p;
    s = f_keep_first(s, end < 0 ? 0 : end > TG_PAGE ? TG_PAGE : end, -INFINITY);
    f_store(scores, s);
    if (in.from[i] > p) {
        for (int lane = 0; lane < TG_PAGE && lane < in.from[i] - p; lane++) scores[lane] = -INFINITY;
        s = f_load(scores);
    }
    *largest = f_max(s, *largest);  // NaN is never the largest
}

// N queries against one span, whose pages are `pages`.
template <int kKind, int N>
void span_partial(const tg_attention_job* job, const uint8_t* const* pages, const Queries& in, const Span& out) {
    const int dim = job->head_dim;
    int first = TG_SPAN, last = 0;
    for (int i = 0; i < N; i++) {
        first = in.from[i] < first ? in.from[i] / TG_PAGE * TG_PAGE : first;
        last = in.end[i] > last ? in.end[i] : last;
    }
    f32x16 largest[N];
    for (int i = 0; i < N; i++) largest[i] = f_set(-INFINITY);
    int p = first;
    for (; p + TG_PAGE < last; p += 2 * TG_PAGE) {
        f32x16 s[N][2];
        scores_of<kKind, N, 2>(pages + p / TG_PAGE, dim, in.q, s);
        for (int i = 0; i < N; i++) {
            take_scores(job, in, out, i, p, s[i][0], &largest[i]);
            take_scores(job, in, out, i, p + TG_PAGE, s[i][1], &largest[i]);
        }
    }
    if (p < last) {
        f32x16 s[N][1];
        scores_of<kKind, N, 1>(pages + p / TG_PAGE, dim, in.q, s);
        for (int i = 0; i < N; i++) take_scores(job, in, out, i, p, s[i][0], &largest[i]);
    }
    for (int i = 0; i < N; i++) {
        out.m[i] = f_largest(largest[i]);
        f32x16 sum = f_set(0.0f);
        for (p = first; p < last; p += TG_PAGE) {
            float* s = out.scores + i * TG_SPAN + p;
            const f32x16 e = f_exp(f_sub(f_load(s), f_set(out.m[i])));
            f_store(s, e);
            sum = f_add(sum, e);
        }
        out.l[i] = f_sum(sum);
    }
    int d = 0;
    if (kKind != TG_KV_Q8 && vectors_for(N, 4) == 4)
        for (; d + 64 <= dim; d += 64) values_of<kKind, N, 4>(job, pages, in, d, out.scores, out.o);
    for (; d + 32 <= dim; d += 32) values_of<kKind, N, 2>(job, pages, in, d, out.scores, out.o);
    if (d < dim) values_of<kKind, N, 1>(job, pages, in, d, out.scores, out.o);
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

// How many of `num` queries are taken at a time: numbers that have code of their own.
constexpr int with_code(int num) { return num >= 12 ? 12 : num >= 6 ? 6 : num > 4 ? 4 : num; }

template <int kKind, int N = kQueries>
inline void partial_of(const tg_attention_job* job, const uint8_t* const* pages, const Queries& in, int num,
                       const Span& out) {
    if constexpr (N > 1)
        if (num < N) return partial_of<kKind, with_code(N - 1)>(job, pages, in, num, out);
    span_partial<kKind, N>(job, pages, in, out);
}

// The first position that a row at `position` sees.
inline int first_seen(const tg_attention_job* job, int position) {
    return position < job->window ? 0 : position - job->window + 1;
}

// block = (row block * kv_heads + kv_head) * max(spans, 1) + span
void attend(const tg_attention_job* job, int block) {
    const int spans = job->spans > 0 ? job->spans : 1, span = block % spans, kv_head = block / spans % job->kv_heads;
    const int first = block / spans / job->kv_heads * job->rows_per_block, dim = job->head_dim;
    const int end = first + job->rows_per_block < job->num_rows ? first + job->rows_per_block : job->num_rows;
    const int group = job->heads / job->kv_heads, num = (end - first) * group;
    float scores[kQueries * TG_SPAN], o[kQueries * TG_MAX_HEAD_DIM], m[kQueries], l[kQueries];
    float total_o[kQueries * TG_MAX_HEAD_DIM], total_m[kQueries], total_l[kQueries];
    const auto row_of = [&](int i) { return first + i / group; };
    const auto head_of = [&](int i) { return kv_head * group + i % group; };
    const auto query_of = [&](int i) { return job->q + (size_t)row_of(i) * job->q_stride + head_of(i) * dim; };
    Queries in;
    for (int at = 0, n; at < num; at += n) {  // some (row, head) pairs of one sequence at a time
        const int sequence = job->sequence[row_of(at)];
        for (n = 1; n < kQueries && at + n < num && job->sequence[row_of(at + n)] == sequence;) n++;
        n = with_code(n);
        int last = 0, from = INT32_MAX;
        for (int i = 0; i < n; i++) {
            memcpy(in.q[i], query_of(at + i), (size_t)dim * 4);
            const int position = job->position[row_of(at + i)], seen = first_seen(job, position);
            last = position > last ? position : last, from = seen < from ? seen : from;
        }
        for (int i = at + n; i < at + n + kQueries && i < num; i++)
            for (int d = 0; d < dim; d += 16) __builtin_prefetch(query_of(i) + d);
        const int32_t* table = job->page_table + (size_t)sequence * job->table_width;
        from = from / TG_SPAN * TG_SPAN;
        if (job->spans > 0) {
            if (span * TG_SPAN < from || span * TG_SPAN > last) continue;
            from = span * TG_SPAN, last = last < from + TG_SPAN ? last : from + TG_SPAN - 1;
        }
        for (int start = from; start <= last; start += TG_SPAN) {
            const uint8_t* pages[(int)TG_SPAN / (int)TG_PAGE];
            for (int p = start; p <= last && p < start + TG_SPAN; p += TG_PAGE) {
                const size_t block_at = (size_t)table[p / TG_PAGE] * job->kv_heads + kv_head;
                pages[(p - start) / TG_PAGE] = job->pages + block_at * job->block_bytes;
            }
            for (int i = 0; i < n; i++) {
                const int position = job->position[row_of(at + i)], seen = position + 1 - start;
                const int skipped = first_seen(job, position) - start;
                in.end[i] = seen < 0 ? 0 : seen > TG_SPAN ? TG_SPAN : seen;
                in.from[i] = skipped < 0 ? 0 : skipped > TG_SPAN ? TG_SPAN : skipped;
            }
            if (job->kv == TG_KV_F32) partial_of<TG_KV_F32>(job, pages, in, n, {scores, m, l, o});
            if (job->kv == TG_KV_F16) partial_of<TG_KV_F16>(job, pages, in, n, {scores, m, l, o});
            if (job->kv == TG_KV_Q8) partial_of<TG_KV_Q8>(job, pages, in, n, {scores, m, l, o});
            for (int i = 0; i < n; i++) {
                if (in.from[i] >= in.end[i]) continue;
                if (job->spans > 0) {
                    const size_t pair = (size_t)row_of(at + i) * job->heads + head_of(at + i);
                    float* partial = job->partial + (pair * job->spans + span) * (dim + 2);
                    partial[0] = m[i], partial[1] = l[i];
                    memcpy(partial + 2, o + i * dim, (size_t)dim * 4);
                } else if (start <= first_seen(job, job->position[row_of(at + i)])) {
                    total_m[i] = m[i], total_l[i] = l[i];
                    memcpy(total_o + i * dim, o + i * dim, (size_t)dim * 4);
                } else {
                    merge(&total_m[i], &total_l[i], total_o + i * dim, m[i], l[i], o + i * dim, dim);
                }
            }
        }
        if (job->spans > 0) continue;
        for (int i = 0; i < n; i++) {
            float* out = job->out + ((size_t)row_of(at + i) * job->heads + head_of(at + i)) * dim;
            for (int d = 0; d < dim; d += 16) f_store(out + d, f_div(f_load(total_o + i * dim + d), f_set(total_l[i])));
        }
    }
}

// Where spans were separate blocks: the partials of one (row, head), merged from left to right.
void attend_merge(const tg_attention_job* job, int row_head) {
    const int dim = job->head_dim, position = job->position[row_head / job->heads];
    const int first = first_seen(job, position) / TG_SPAN;
    const float* partial = job->partial + ((size_t)row_head * job->spans + first) * (dim + 2);
    float* out = job->out + (size_t)row_head * dim;
    float m = partial[0], l = partial[1];
    memcpy(out, partial + 2, (size_t)dim * 4);
    for (int s = first + 1; s * TG_SPAN <= position; s++) {
        partial += dim + 2;
        merge(&m, &l, out, partial[0], partial[1], partial + 2, dim);
    }
    for (int d = 0; d < dim; d += 16) f_store(out + d, f_div(f_load(out + d), f_set(l)));
}

}  // namespace
