#include "cpu.h"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <thread>
#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(TG_X86)
#include <cpuid.h>
#elif defined(TG_ARM64) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

extern "C" {
extern const tg_ops tg_ops_plain;
#if defined(TG_X86)
extern const tg_ops tg_ops_avx2, tg_ops_avxvnni, tg_ops_avx512, tg_ops_avx512vnni;
#elif defined(TG_ARM64)
extern const tg_ops tg_ops_neon;
#endif
}

namespace tokenglass {
namespace {

#if defined(TG_X86)
bool has_avxvnni() {  // not every compiler's __builtin_cpu_supports knows it
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
}
#elif defined(TG_ARM64)
bool has_dot_product() {
#if defined(__linux__)
    return getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
#elif defined(__APPLE__)
    return true;  // since the first Mac with such a processor
#else
    return false;
#endif
}
#endif

}  // namespace

std::vector<const tg_ops*> runnable_isas() {
    std::vector<const tg_ops*> found;
#if defined(TG_X86)
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    if (avx512 && __builtin_cpu_supports("avx512vnni")) found.push_back(&tg_ops_avx512vnni);
    if (avx512) found.push_back(&tg_ops_avx512);
    if (avx2 && has_avxvnni()) found.push_back(&tg_ops_avxvnni);
    if (avx2) found.push_back(&tg_ops_avx2);
#elif defined(TG_ARM64)
    if (has_dot_product()) found.push_back(&tg_ops_neon);
#endif
    found.push_back(&tg_ops_plain);
    return found;
}

void* allocate_aligned(size_t bytes, bool zeroed) {
    if (bytes > SIZE_MAX - 64) throw std::bad_alloc();
    const size_t rounded = std::max<size_t>(64, (bytes + 63) / 64 * 64);
    void* p = std::aligned_alloc(64, rounded);
    if (!p) throw std::bad_alloc();
    if (zeroed) std::memset(p, 0, rounded);
    return p;
}

constexpr size_t kLargePage = size_t{2} << 20, kChunk = size_t{64} << 20;

std::shared_ptr<uint8_t> Arena::allocate(size_t bytes) {
    if (bytes > SIZE_MAX / 2) throw std::bad_alloc();
    const size_t rounded = (bytes + 63) / 64 * 64;
    if (used_ + rounded > chunk_bytes_) new_chunk(std::max(rounded, kChunk));
    std::shared_ptr<uint8_t> piece(chunk_, chunk_.get() + used_);
    used_ += rounded;
    return piece;
}

void Arena::new_chunk(size_t bytes) {
    const size_t size = (bytes + kLargePage - 1) / kLargePage * kLargePage;
    void* p = std::aligned_alloc(kLargePage, size);
    if (!p) throw std::bad_alloc();
#if defined(__linux__)
    madvise(p, size, MADV_HUGEPAGE);  // a hint: where it is refused, small pages do
#endif
    chunk_ = std::shared_ptr<uint8_t>(static_cast<uint8_t*>(p), [](uint8_t* q) { std::free(q); });
    chunk_bytes_ = size, used_ = 0;
}

void Arena::reserve(size_t bytes) {
#if defined(__linux__) && defined(MADV_POPULATE_WRITE)
    if (bytes > SIZE_MAX / 2) throw std::bad_alloc();
    new_chunk(bytes);
    const auto clear = [chunk = chunk_, size = bytes / kLargePage * kLargePage] {
        constexpr size_t kStep = 8 * kLargePage;
        for (size_t from = 0; from < size && chunk.use_count() > 1; from += kStep)  // 1: nobody wants it any more
            if (madvise(chunk.get() + from, std::min(kStep, size - from), MADV_POPULATE_WRITE)) return;
    };
    try {
        std::thread(clear).detach();
    } catch (const std::system_error&) {  // no more threads: packing waits for the system then
    }
#else
    (void)bytes;
#endif
}

}  // namespace tokenglass
