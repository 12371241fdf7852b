// Queries and keys made ready, keys and values stored: norms of single heads, rotary positions, KV pages.
//
// RoPE rotates pairs (i, i + rotated/2) ("half-split"; loaders bring other layouts to it); dimensions from `rotated` on
// stay.
#pragma once
#include "kv_page.h"
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
    for (int h = 0; h < job->kv_heads; h++, k += dim, v += dim) {
        uint8_t* keys = job->pages + ((size_t)page * job->kv_heads + h) * job->block_bytes;
        uint8_t* values = keys + job->block_bytes / 2;
        if (job->kv == TG_KV_Q8) {
            store_codes((int8_t*)keys, slot, TG_PAGE, k, dim, (uint16_t*)(keys + TG_PAGE * dim) + slot);
            store_codes((int8_t*)values, slot * dim, 1, v, dim, (uint16_t*)(values + TG_PAGE * dim) + slot);
        } else {
            store_values(keys, job->kv, slot, TG_PAGE, k, dim);
            store_values(values, job->kv, slot * dim, 1, v, dim);
        }
    }
}

}  // namespace
