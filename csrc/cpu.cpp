#include "cpu.h"

#include <cstring>
#if defined(__linux__)
#include <sys/mman.h>
#endif

extern "C" {
extern const tg_ops tg_ops_plain;
#if defined(TG_X86)
extern const tg_ops tg_ops_avx2;
extern const tg_ops tg_ops_avx512;
extern const tg_ops tg_ops_avx512vnni;
#endif
}

namespace tokenglass {

std::vector<const tg_ops*> runnable_isas() {
    std::vector<const tg_ops*> found;
#if defined(TG_X86)
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    if (avx512 && __builtin_cpu_supports("avx512vnni")) found.push_back(&tg_ops_avx512vnni);
    if (avx512) found.push_back(&tg_ops_avx512);
    if (avx2) found.push_back(&tg_ops_avx2);
#endif
    found.push_back(&tg_ops_plain);
    return found;
}

void* allocate_aligned(size_t bytes, bool zeroed) {
    constexpr size_t kLarge = size_t{2} << 20;
    const size_t alignment = bytes >= kLarge ? kLarge : 64;
    if (bytes > SIZE_MAX - alignment) throw std::bad_alloc();
    const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void* p = std::aligned_alloc(alignment, rounded ? rounded : alignment);
    if (!p) throw std::bad_alloc();
#if defined(__linux__)
    if (bytes >= kLarge && !zeroed) madvise(p, rounded, MADV_HUGEPAGE);
#endif
    if (zeroed) std::memset(p, 0, bytes);
    return p;
}

}  // namespace tokenglass
