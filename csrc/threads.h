// A few threads that share the blocks of a job: the only file with threads.
//
// Each thread has a queue of neighbouring blocks (its share of the weights is one stretch of memory), and helps with
// the others' queues when its own is empty. A queue is one 64-bit word: [end 32 | next 32]. A fetch-add takes the next
// block, and since the word also says where its queue ends, a late thread can never run a block twice or of a job that
// is over. The caller works too, so it can finish alone when the others get no processor. Waiting spins for some 40
// microseconds (the gap between two operations of a step is shorter) and then sleeps on a futex (std::atomic::wait). A
// forked child has no other threads: there the caller works alone.
#pragma once
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tokenglass {

class Threads {
  public:
    using Function = void (*)(const void* context, int block);

    explicit Threads(int num_threads) : num_threads_(num_threads), queues_(new Queue[num_threads]) {}
    ~Threads() { stop(); }
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;

    int num_threads() const { return num_threads_; }

    // Runs function(context, block) for every block in [0, blocks), on this thread and the others; returns when all are
    // done. Two callers at once are allowed: the second works alone.
    void run(int blocks, Function function, const void* context) {
        if (blocks <= 0) return;
        std::unique_lock lock(busy_, std::try_to_lock);
        if (!lock.owns_lock() || blocks == 1 || num_threads_ == 1) {
            for (int b = 0; b < blocks; b++) function(context, b);
            return;
        }
        if (workers_.empty()) start();
        function_ = function, context_ = context;
        left_.store(blocks, std::memory_order_relaxed);
        for (int i = num_threads_ - 1; i >= 0; i--) {
            const uint64_t first = (uint64_t)blocks * i / num_threads_, end = (uint64_t)blocks * (i + 1) / num_threads_;
            queues_[i].word.store(end << 32 | first, std::memory_order_seq_cst);
        }
        if (sleepers_.load(std::memory_order_seq_cst) > 0) {
            bell_.fetch_add(1, std::memory_order_seq_cst);
            bell_.notify_all();
        }
        work(0);
        if (!spin([&] { return left_.load(std::memory_order_acquire) == 0; })) {
            caller_sleeps_.store(1, std::memory_order_seq_cst);
            for (int left; (left = left_.load(std::memory_order_seq_cst)) != 0;)
                left_.wait(left, std::memory_order_seq_cst);
            caller_sleeps_.store(0, std::memory_order_relaxed);
        }
    }

  private:
    static void pause() {
#if defined(__x86_64__) || defined(_M_X64)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    }

    template <class Done>
    static bool spin(Done done) {
        const auto start = std::chrono::steady_clock::now();
        do {
            for (int i = 0; i < 32; i++) {
                if (done()) return true;
                pause();
            }
        } while (std::chrono::steady_clock::now() - start < std::chrono::microseconds(40));
        return false;
    }

    struct alignas(64) Queue {
        std::atomic<uint64_t> word{0};

        static int end_of(uint64_t word) { return (int)(word >> 32); }
        static int next_of(uint64_t word) { return (int)(uint32_t)word; }
        bool has_block() const {  // in one order with sleepers_: a thread that goes to sleep has seen the newest job
            const uint64_t now = word.load(std::memory_order_seq_cst);
            return next_of(now) < end_of(now);
        }
    };

    // Takes blocks from thread `self`'s queue, then from the others', until none is left. A block in hand keeps its job
    // open, so function_ and context_ are that job's.
    void work(int self) {
        for (int i = 0; i < num_threads_; i++) {
            Queue& queue = queues_[(self + i) % num_threads_];
            while (queue.has_block()) {
                const uint64_t ticket = queue.word.fetch_add(1, std::memory_order_acq_rel);
                if (Queue::next_of(ticket) >= Queue::end_of(ticket)) break;
                function_(context_, Queue::next_of(ticket));
                if (left_.fetch_sub(1, std::memory_order_seq_cst) == 1 &&
                    caller_sleeps_.load(std::memory_order_seq_cst))
                    left_.notify_all();
            }
        }
    }

    void loop(int self) {
        const Queue& own = queues_[self];
        while (!stopping_.load(std::memory_order_acquire)) {
            if (spin([&] { return own.has_block() || stopping_.load(std::memory_order_relaxed); })) {
                work(self);
                continue;
            }
            const uint32_t rung = bell_.load(std::memory_order_seq_cst);
            sleepers_.fetch_add(1, std::memory_order_seq_cst);
            if (!own.has_block() && !stopping_.load(std::memory_order_seq_cst))
                bell_.wait(rung, std::memory_order_seq_cst);
            sleepers_.fetch_sub(1, std::memory_order_seq_cst);
        }
    }

    void start() {
        process_ = getpid();
        for (int i = 1; i < num_threads_; i++) workers_.emplace_back([this, i] { loop(i); });
    }
    void stop() {
        if (!workers_.empty() &&
            getpid() != process_) {  // the threads stayed with the parent: nothing to join or detach
            new std::vector<std::thread>(std::move(workers_));
            return;
        }
        stopping_.store(true, std::memory_order_seq_cst);
        bell_.fetch_add(1, std::memory_order_seq_cst);
        bell_.notify_all();
        for (auto& worker : workers_) worker.join();
    }

    const int num_threads_;
    std::unique_ptr<Queue[]> queues_;
    std::mutex busy_;
    std::vector<std::thread> workers_;
    pid_t process_ = 0;  // that has these workers
    Function function_ = nullptr;
    const void* context_ = nullptr;
    alignas(64) std::atomic<int> left_{0};
    std::atomic<int> caller_sleeps_{0};
    alignas(64) std::atomic<uint32_t> bell_{0};
    std::atomic<int> sleepers_{0};
    std::atomic<bool> stopping_{false};
};

}  // namespace tokenglass
