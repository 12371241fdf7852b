// Passes over the vocabulary: the best token and the softmax weights of all of them.
#pragma once
#include "ops.h"
#include "simd.h"

namespace {

// The lowest id among the largest logits; NaN never wins. -1 where the largest is not finite: nothing can be chosen.
int argmax(const float* logits, int n) {
    float top = -INFINITY;
    int at = -1, at_end = -1;  // the first stretch of 1,024 that holds the largest
    for (int from = 0; from < n; from += 1024) {
        const int end = from + 1024 < n ? from + 1024 : n;
        f32x16 best = f_set(-INFINITY);
        int i = from;
        for (; i + 16 <= end; i += 16) best = f_max(f_load(logits + i), best);
        float largest = f_largest(best);
        for (; i < end; i++) largest = logits[i] > largest ? logits[i] : largest;
        if (largest > top) top = largest, at = from, at_end = end;
    }
    if (!(top > -INFINITY && top < INFINITY)) return -1;
    while (at < at_end && logits[at] != top) at++;
    return at;
}

float softmax(const float* logits, float* weights, int n, float max, float temperature) {
    const f32x16 top = f_set(max), t = f_set(temperature);
    f32x16 sum = f_set(0.0f);
    for (int i = 0; i < n; i += 16) {
        f32x16 e = f_exp(f_div(f_sub(load_first(logits + i, n - i), top), t));
        if (n - i < 16) e = f_keep_first(e, n - i, 0.0f);
        store_first(weights + i, e, n - i);
        sum = f_add(sum, e);
    }
    return f_sum(sum);
}

int next_above(const float* logits, int from, int n, float limit) {
    int i = from;
    while (i + 16 <= n && f_count_greater(f_load(logits + i), f_set(limit)) == 0) i += 16;
    while (i < n && !(logits[i] > limit)) i++;
    return i;
}

tg_survey survey(const float* logits, int n, float max, float chosen) {
    f32x16 weights = f_set(0.0f), products = weights;
    int greater = 0;
    for (int i = 0; i < n; i += 16) {
        const f32x16 z =
            n - i >= 16 ? f_load(logits + i) : f_keep_first(load_first(logits + i, n - i), n - i, -INFINITY);
        const f32x16 below = f_sub(z, f_set(max)), e = f_exp(below);
        weights = f_add(weights, e);
        products = f_fma(e, f_max(below, f_set(-1e30f)), products);  // 0 times -inf would be NaN
        greater += f_count_greater(z, f_set(chosen));
    }
    return {f_sum(weights), f_sum(products), greater};
}

}  // namespace
