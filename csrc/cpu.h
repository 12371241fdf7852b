// What bound operations share: the instruction set's table, the threads, scratch memory and the time spent in
// operations.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "ops.h"
#include "threads.h"

namespace tokenglass {

// The instruction sets compiled in that this processor can run, best first.
std::vector<const tg_ops*> runnable_isas();

template <class T>
struct AlignedDelete {
    void operator()(T* p) const { std::free(p); }
};
template <class T>
using Aligned = std::unique_ptr<T[], AlignedDelete<T>>;

// 64-byte aligned, zeroed where asked.
void* allocate_aligned(size_t bytes, bool zeroed);
template <class T>
Aligned<T> aligned(size_t count, bool zeroed = false) {
    return Aligned<T>(static_cast<T*>(allocate_aligned(count * sizeof(T), zeroed)));
}

// Memory for weights, cut from large chunks that the system can back with 2 MiB pages: a decoded token reads every
// weight, and with 4 KiB pages would look up 24 thousand addresses for 100 MB. A piece keeps its chunk alive.
class Arena {
  public:
    std::shared_ptr<uint8_t> allocate(size_t bytes);
    // A chunk for the next `bytes`, which the system clears while the caller does something else: in a virtual machine
    // that may take as long as packing.
    void reserve(size_t bytes);

  private:
    void new_chunk(size_t bytes);
    std::shared_ptr<uint8_t> chunk_;
    size_t used_ = 0, chunk_bytes_ = 0;
};

class Cpu {
  public:
    Cpu(int num_threads, const tg_ops* ops) : ops(*ops), threads(num_threads) {}

    template <class F>
    void parallel(int blocks, const F& function) {
        threads.run(blocks, [](const void* f, int block) { (*static_cast<const F*>(f))(block); }, &function);
    }
    // Row by row: on this thread for a few rows, shared out from `serial_rows` on.
    template <class F>
    void each_row(int rows, int serial_rows, const F& function) {
        if (rows < serial_rows) {
            for (int row = 0; row < rows; row++) function(row);
            return;
        }
        const int step = 4;
        parallel((rows + step - 1) / step, [&](int block) {
            for (int row = block * step; row < rows && row < (block + 1) * step; row++) function(row);
        });
    }
    float* partials(size_t count) {  // grown when operations are bound, never inside one
        if (count > num_partials_) partials_ = aligned<float>(count), num_partials_ = count;
        return partials_.get();
    }

    const tg_ops& ops;
    Threads threads;
    Arena weights;
    bool is_timed = false;
    double op_seconds = 0.0, product_seconds = 0.0;  // products: of op_seconds, without norms and quantising

  private:
    Aligned<float> partials_;
    size_t num_partials_ = 0;
};

// Adds the lifetime of the guard to one of the sums of time, where somebody asked for it.
class Timed {
  public:
    explicit Timed(Cpu& cpu, double Cpu::* sum = &Cpu::op_seconds) : cpu_(cpu), sum_(sum) {
        if (cpu_.is_timed) start_ = std::chrono::steady_clock::now();
    }
    ~Timed() {
        if (cpu_.is_timed)
            cpu_.*sum_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

  private:
    Cpu& cpu_;
    double Cpu::* sum_;
    std::chrono::steady_clock::time_point start_;
};

}  // namespace tokenglass
