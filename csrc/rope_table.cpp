#include "rope_table.h"

#include <cmath>
#include <cstddef>

namespace tokenglass {
namespace {

// 1 / (2n (2n + 1)) and 1 / (2n (2n - 1)): what one term of each series has and the one before it has not.
constexpr int kTerms = 9;
struct Factors {
    double sine[kTerms + 1], cosine[kTerms + 1];
};
constexpr Factors make_factors() {
    Factors f{};
    for (int n = 1; n <= kTerms; n++)
        f.sine[n] = 1.0 / (2 * n * (2 * n + 1)), f.cosine[n] = 1.0 / (2 * n * (2 * n - 1));
    return f;
}
constexpr Factors kFactors = make_factors();

// Quarter turns are taken off in two exact steps (Cody-Waite: the head of pi/2 has 33 bits, so k * head is exact below
// 2^20 turns), then the Taylor series on [-pi/4, pi/4] to 1e-17.
void sine_cosine(double angle, double* sine, double* cosine) {
    const double k = std::nearbyint(angle * 0.63661977236758134308);
    double r = angle - k * 1.57079632673412561417e+00;
    r -= k * 6.07710050650619224932e-11;
    const double z = r * r;
    double s = 1.0, c = 1.0;
    for (int n = kTerms; n >= 1; n--) {
        s = 1.0 - s * (z * kFactors.sine[n]);
        c = 1.0 - c * (z * kFactors.cosine[n]);
    }
    s *= r;
    switch ((long long)k & 3) {
        case 0:
            *sine = s, *cosine = c;
            break;
        case 1:
            *sine = c, *cosine = -s;
            break;
        case 2:
            *sine = -s, *cosine = -c;
            break;
        default:
            *sine = -c, *cosine = s;
            break;
    }
}

}  // namespace

void fill_rope_table(const float* inverse_frequency, int half, float factor, int from, int to, float* table) {
    for (int position = from; position < to; position++) {
        float* row = table + (size_t)position * 2 * half;
        for (int i = 0; i < half; i++) {
            const float angle = (float)position * inverse_frequency[i];
            double sine, cosine;
            sine_cosine((double)angle, &sine, &cosine);
            row[i] = (float)cosine * factor;
            row[half + i] = (float)sine * factor;
        }
    }
}

}  // namespace tokenglass
