// Numbers that are the same on every machine, and a digest of what became of them.
#pragma once
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

// kPlain: between -8 and 8. kTies: halves up to 127, so that a group's scale is 1. kExtreme: all of one size, either
// sign: int8 activations of
// +-127. kWild: any bits, infinities, NaN, subnormals and the borders of int8, int32 and float16 among them.
enum Flavour { kPlain, kTies, kExtreme, kWild };
constexpr Flavour kFlavours[] = {kPlain, kTies, kExtreme, kWild};

class Draw {  // splitmix64
  public:
    explicit Draw(uint64_t seed) : state_(seed) {}
    uint64_t bits() {
        uint64_t z = state_ += 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return z ^ z >> 31;
    }
    int below(int n) { return (int)(bits() % (uint64_t)n); }
    float number(Flavour flavour) {
        static const float kBorders[] = {0.0f,          INFINITY,      NAN,       FLT_MAX,    FLT_MIN,
                                         1e-45f,        1e-40f,        65504.0f,  65519.996f, 65520.0f,
                                         5.9e-8f,       2.9802322e-8f, 126.5f,    127.5f,     2147483520.0f,
                                         2147483648.0f, 88.0f,         87.33654f, 0.3465736f, 1.0397208f};
        const float sign = bits() & 1 ? 1.0f : -1.0f;
        if (flavour == kTies) return sign * (below(4) == 0 ? 127.0f : (float)below(254) * 0.5f);
        if (flavour == kExtreme) return sign * 3.0f;
        if (flavour == kWild && below(8) == 0) return sign * kBorders[below(sizeof kBorders / sizeof kBorders[0])];
        if (flavour == kWild && below(8) == 0) {
            const uint32_t any = (uint32_t)bits();
            float x;
            memcpy(&x, &any, 4);
            return x;
        }
        return sign * (float)(bits() >> 40) * 0x1p-21f;
    }
    std::vector<float> numbers(size_t n, Flavour flavour) {
        std::vector<float> v(n);
        for (auto& x : v) x = number(flavour);
        return v;
    }
    std::vector<uint16_t> halves(size_t n, Flavour flavour) {  // all bits if wild, else less than 2
        std::vector<uint16_t> v(n);
        for (auto& x : v) x = (uint16_t)(bits() & (flavour == kWild ? 0xffff : 0xbfff));
        return v;
    }

  private:
    uint64_t state_;
};

// FNV-1a. Processors differ in which NaN an operation gives, so that one NaN stands for all of them.
class Digest {
  public:
    uint64_t value = 0xcbf29ce484222325;
    void add(uint64_t x) {
        for (int i = 0; i < 8; i++) value = (value ^ (x >> 8 * i & 255)) * 0x100000001b3;
    }
    void add(float x) {
        uint32_t bits;
        memcpy(&bits, &x, 4);
        add((uint64_t)(x == x ? bits : 0x7fc00000));
    }
    void add(uint16_t half) { add((uint64_t)((half & 0x7fff) > 0x7c00 ? 0x7e00 : half)); }
    void add(int32_t x) { add((uint64_t)(uint32_t)x); }
    void add(int8_t x) { add((uint64_t)(uint8_t)x); }
    template <class T>
    void add(const std::vector<T>& v) {
        for (const T& x : v) add(x);
    }
};
