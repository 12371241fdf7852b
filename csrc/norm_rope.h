// The small operations between the products: RMS norm, rotary positions with the store into KV pages, and SwiGLU.
//
// RoPE rotates pairs (i, i + head_dim/2) ("half-split"; loaders bring other layouts to it). A KV page of one layer and
// KV head:
//
//   K: head_dim x 16   element [d][slot]: the 16 lanes of a vector are 16 positions
//   V: 16 x head_dim   element [slot][d]: the lanes are dimensions
#pragma once
#include "ops.h"
#include "simd.h"

namespace {

void rms_norm(const float* x, const float* weight, float* out, int width, float eps) {
    f32x16 squares = f_set(0.0f);
    int i = 0;
    for (; i + 16 <= width; i += 16) squares = f_fma(f_load(x + i), f_load(x + i), squares);
    if (i < width) {  // the tail joins lanes 0.. of the same chain
        float tail[16] = {0};
        memcpy(tail, x + i, (size_t)(width - i) * 4);
        squares = f_fma(f_load(tail), f_load(tail), squares);
    }
    const float factor = 1.0f / sqrtf(f_sum(squares) / (float)width + eps);
    for (i = 0; i + 16 <= width; i += 16)
        f_store(out + i, f_mul(f_mul(f_load(x + i), f_set(factor)), f_load(weight + i)));
    for (; i < width; i++) out[i] = x[i] * factor * weight[i];
}

// out = silu(gate) * up, silu(x) = x / (1 + e^-x); gate_up holds the gates, then the ups. width is a multiple of 16.
void swiglu(const float* gate_up, float* out, int width) {
    for (int i = 0; i < width; i += 16) {
        const f32x16 gate = f_load(gate_up + i);
        const f32x16 denominator = f_add(f_set(1.0f), f_exp(f_sub(f_set(0.0f), gate)));
        f_store(out + i, f_mul(f_div(gate, denominator), f_load(gate_up + width + i)));
    }
}

inline void rotate(float* head, const float* cos_sin, int head_dim) {
    const int half = head_dim / 2;
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
    const float* cos_sin = job->cos_sin + (size_t)position * dim;
    for (int h = 0; h < job->heads + job->kv_heads; h++) rotate(q + h * dim, cos_sin, dim);
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
