// Queries and keys made ready, keys and values stored: norms of single heads, rotary positions, KV pages.
//
// RoPE rotates pairs (i, i + rotated/2) ("half-split"; loaders bring other layouts to it); dimensions from `rotated` on
// stay. A KV page of one layer and KV head:
//
//   K: head_dim x 16   element [d][slot]: the 16 lanes of a vector are 16 positions
//   V: 16 x head_dim   element [slot][d]: the lanes are dimensions
#pragma once
#include "row_ops.h"

namespace {

inline void rotate(float* head, const float* cos_sin, int rotated) {
    const int half = rotated / 2;
    int i = 0;
    for (; i + 16 <= half; i += 16) {
        const f32x16 c = f_load(cos_sin + i), s = f_load(cos_sin + half + i), a = f_load(head + i),
                     b = f_load(head + half + i);
        f_store(head + i, f_sub(f_mul(a, c), f_mul(b, s)));
        f_store(head + half + i, f_add(f_mul(b, c), f_mul(a, s)));
    }
    for (; i < half; i++) {
        const float c = cos_sin[i], s = cos_sin[half + i], a = head[i], b = head[half + i];
        head[i] = a * c - b * s;
        head[half + i] = b * c + a * s;
    }
}

inline void store_element(void* page, bool half, size_t at, f32x16 x, int lanes, size_t stride) {
    float v[16];
    uint16_t h[16];
    if (half) {  // beyond float16's range its largest value stands in for infinity; NaN stays NaN
        f_store_half(h, f_min(f_set(65504.0f), f_max(f_set(-65504.0f), x)));
        for (int i = 0; i < lanes; i++) ((uint16_t*)page)[at + i * stride] = h[i];
    } else {
        f_store(v, x);
        for (int i = 0; i < lanes; i++) ((float*)page)[at + i * stride] = v[i];
    }
}

void rope_store(const tg_rope_job* job, int row) {
    const int dim = job->head_dim, position = job->position[row], slot = position % TG_PAGE;
    float* q = job->qkv + (size_t)row * job->stride;
    float* k = q + job->heads * dim;
    float* v = k + job->kv_heads * dim;
    for (int h = 0; h < job->heads + job->kv_heads; h++) {
        float* head = q + h * dim;
        const float* norm = h < job->heads ? job->q_norm : job->k_norm;
        if (norm) rms_norm(head, norm, head, dim, job->eps, 0);
        if (job->cos_sin) rotate(head, job->cos_sin + (size_t)position * job->rotated, job->rotated);
    }
    const int page = job->page_table[(size_t)job->sequence[row] * job->table_width + position / TG_PAGE];
    const size_t block = (size_t)2 * TG_PAGE * dim;  // one page of one KV head, K and V
    for (int h = 0; h < job->kv_heads; h++) {
        const size_t base = ((size_t)page * job->kv_heads + h) * block;
        for (int d = 0; d < dim; d += 16) {
            store_element(job->pages, job->half, base + (size_t)d * TG_PAGE + slot, f_load(k + h * dim + d), 16,
                          TG_PAGE);
            store_element(job->pages, job->half, base + block / 2 + (size_t)slot * dim + d, f_load(v + h * dim + d), 16,
                          1);
        }
    }
}

}  // namespace
