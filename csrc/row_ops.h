// What happens to one row between the products: norms, activations, scaling, adding.
//
// A norm's sums go lane by lane: column i to lane i % 16, joined by one fixed tree (docs/en/numerics.md).
#pragma once
#include "ops.h"
#include "simd.h"

namespace {

// out = x * factor * weight, factor = 1 / sqrt(mean(x^2) + eps); `add`: out += it.
void rms_norm(const float* x, const float* weight, float* out, int width, float eps, int add) {
    f32x16 squares = f_set(0.0f);
    for (int i = 0; i < width; i += 16) {
        const f32x16 v = load_first(x + i, width - i);
        squares = f_fma(v, v, squares);
    }
    const f32x16 factor = f_set(1.0f / sqrtf(f_sum(squares) / (float)width + eps));
    for (int i = 0; i < width; i += 16) {
        f32x16 v = f_mul(f_mul(load_first(x + i, width - i), factor), load_first(weight + i, width - i));
        if (add) v = f_add(load_first(out + i, width - i), v);
        store_first(out + i, v, width - i);
    }
}

// out = (x - mean) * factor * weight + bias, factor = 1 / sqrt(mean((x - mean)^2) + eps).
void layer_norm(const float* x, const float* weight, const float* bias, float* out, int width, float eps) {
    f32x16 sum = f_set(0.0f), squares = f_set(0.0f);
    for (int i = 0; i < width; i += 16) sum = f_add(sum, load_first(x + i, width - i));
    const f32x16 mean = f_set(f_sum(sum) / (float)width);
    for (int i = 0; i < width; i += 16) {
        f32x16 v = f_sub(load_first(x + i, width - i), mean);
        if (width - i < 16) v = f_keep_first(v, width - i, 0.0f);
        squares = f_fma(v, v, squares);
    }
    const f32x16 factor = f_set(1.0f / sqrtf(f_sum(squares) / (float)width + eps));
    for (int i = 0; i < width; i += 16) {
        const int n = width - i;
        const f32x16 v = f_mul(f_sub(load_first(x + i, n), mean), factor);
        store_first(out + i, f_fma(v, load_first(weight + i, n), load_first(bias + i, n)), n);
    }
}

// x / (1 + e^-y)
inline f32x16 times_sigmoid(f32x16 x, f32x16 y) { return f_div(x, f_add(f_set(1.0f), f_exp(f_sub(f_set(0.0f), y)))); }

// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, where (1 + tanh(y)) / 2 is the sigmoid of 2 y.
inline f32x16 gelu_of(f32x16 x) {
    const f32x16 factor = f_fma(f_mul(x, x), f_set(0.0713548162726f), f_set(1.5957691216057f));
    return times_sigmoid(x, f_mul(x, factor));
}

// out = act(gate) * up; gate_up holds the gates, then the ups. width is a multiple of 16.
void swiglu(const float* gate_up, float* out, int width) {
    for (int i = 0; i < width; i += 16) {
        const f32x16 gate = f_load(gate_up + i);
        f_store(out + i, f_mul(times_sigmoid(gate, gate), f_load(gate_up + width + i)));
    }
}
void geglu(const float* gate_up, float* out, int width) {
    for (int i = 0; i < width; i += 16)
        f_store(out + i, f_mul(gelu_of(f_load(gate_up + i)), f_load(gate_up + width + i)));
}
void gelu(const float* x, float* out, int width) {
    for (int i = 0; i < width; i += 16) f_store(out + i, gelu_of(f_load(x + i)));
}

void scale_row(float* x, float factor, int width) {
    for (int i = 0; i < width; i += 16)
        store_first(x + i, f_mul(load_first(x + i, width - i), f_set(factor)), width - i);
}
void add_row(const float* x, float* out, int width) {
    for (int i = 0; i < width; i += 16)
        store_first(out + i, f_add(load_first(out + i, width - i), load_first(x + i, width - i)), width - i);
}

}  // namespace
