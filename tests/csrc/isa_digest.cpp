// Every kernel of every instruction set that can run here, on the same drawn numbers: one line `set kernel digest`
// each. Wherever this program runs, a kernel's digest is the same (tests/kernels/test_same_digests.py).
//
// A new panel kind comes in by itself (csrc/panels/kinds.h); a new kernel is a function and a row of kCases.
#include <cstdio>

#include "../../csrc/cpu.h"
#include "draw.h"

namespace {

struct Rows {  // activations [n, width]
    std::vector<float> data;
    std::vector<tg_group> quantised;
    tg_rows view{};
    Rows(const tg_ops& ops, std::vector<float> numbers, int n, int width) : data(std::move(numbers)) {
        const int groups = width / TG_GROUP;
        quantised.resize((size_t)(n + TG_TILE - 1) / TG_TILE * TG_TILE * groups);
        view.data = data.data(), view.quantised = quantised.data(), view.width = width, view.groups = groups;
        for (int i = 0; i < n; i++) ops.quantise(&view, i);
    }
};

struct Weights {
    std::vector<uint8_t> panels;
    tg_matrix matrix{};
    std::vector<float> bias;
    Weights(const tg_kind& kind, Draw& draw, int fill, int rows, int cols) {
        const int blocks = cols / kind.columns, size = kind.file_bytes, num = (rows + TG_LANES - 1) / TG_LANES;
        matrix.panel_bytes = (size_t)blocks * kind.piece_bytes;
        panels.resize(matrix.panel_bytes * num);
        const size_t row_bytes = (size_t)blocks * size;
        std::vector<uint8_t> raw(row_bytes * num * TG_LANES);
        for (size_t i = 0; i < row_bytes * rows; i++) raw[i] = byte(draw, fill, (int)(i % size), size);
        for (int p = 0; p < num; p++) {
            const uint8_t* lanes[TG_LANES];
            for (int lane = 0; lane < TG_LANES; lane++) lanes[lane] = raw.data() + row_bytes * (p * TG_LANES + lane);
            kind.pack(lanes, blocks, panels.data() + p * matrix.panel_bytes);
        }
        bias = draw.numbers((size_t)num * TG_LANES, kPlain);
        matrix.data = panels.data(), matrix.kind = &kind, matrix.rows = rows, matrix.cols = cols;
        if (fill > 1) matrix.bias = bias.data();
    }
    static constexpr int kFills = 5;
    static int cols_of(const tg_kind& kind) { return kind.columns > 32 ? 512 : 96; }

  private:
    // A byte of a block: any; any that keeps floats and half floats below 2; or the smallest, the middle, the largest
    // code, with scales of about 1/3 where a block has them, at its ends.
    static uint8_t byte(Draw& draw, int fill, int at, int size) {
        const uint8_t any = (uint8_t)draw.bits();
        if (fill == 0) return any;
        if (fill == 1) return any & 0xbf;
        const bool is_scale = at < 4 || at >= size - 4;
        return is_scale ? (at % 2 ? 0x35 : 0x55) : (uint8_t)(fill == 2 ? 0x00 : fill == 3 ? 0x80 : 0xff);
    }
};

void quantise(const tg_ops& ops, Draw& draw, Digest& digest) {
    for (Flavour flavour : kFlavours) {
        for (int width : {32, 96, 2048}) {
            const Rows rows(ops, draw.numbers(3 * (size_t)width, flavour), 3, width);
            for (const tg_group& group : rows.quantised) {
                for (int8_t q : group.q) digest.add(q);
                digest.add(group.scale), digest.add(group.sum), digest.add(group.scaled_sum);
                for (const auto& part : {group.all, group.half[0], group.half[1]})
                    digest.add((int32_t)part.zero), digest.add((int32_t)part.sum);
            }
        }
    }
}

void linear(const tg_ops& ops, Draw& draw, Digest& digest, const tg_kind& kind) {
    const int cols = Weights::cols_of(kind), height = 40, width = 2 * height + 3;
    for (int fill = 0; fill < Weights::kFills; fill++) {
        Weights a(kind, draw, fill, height, cols), b(kind, draw, fill, height, cols);
        b.matrix.out_offset = height + 3, b.matrix.first_block = 2;  // two blocks of two panels, the last one ragged
        const tg_matrix matrices[] = {a.matrix, b.matrix};
        for (int n : {1, 2, 3, 5, 8, 13, 16}) {
            for (Flavour flavour : {kPlain, kExtreme, kWild}) {
                Rows rows(ops, draw.numbers((size_t)n * cols, flavour), n, cols);
                for (int mode = 0; mode < 4; mode++) {
                    std::vector<float> out = draw.numbers((size_t)n * width, kPlain);
                    tg_linear_job job{};
                    job.matrices = matrices, job.num_matrices = 2, job.panels_per_block = 2;
                    job.num_rows = n, job.rows_per_block = TG_TILE, job.row_blocks = (n + TG_TILE - 1) / TG_TILE;
                    job.exact = mode & 1, job.add = mode >> 1, job.x = rows.view;
                    job.out = out.data(), job.out_width = width;
                    for (int block = 0; block < 4 * job.row_blocks; block++) ops.linear(&job, block);
                    digest.add(out);
                }
            }
        }
    }
}

void embed(const tg_ops&, Draw& draw, Digest& digest, const tg_kind& kind) {
    const int cols = Weights::cols_of(kind);
    std::vector<float> out(cols);
    for (int fill = 0; fill < Weights::kFills; fill++) {
        const Weights weights(kind, draw, fill, 40, cols);
        for (int id = 0; id < 40; id++) kind.embed(&weights.matrix, id, out.data()), digest.add(out);
    }
}

void norms(const tg_ops& ops, Draw& draw, Digest& digest) {
    for (Flavour flavour : kFlavours) {
        for (int width : {1, 15, 16, 17, 64, 576}) {
            const auto x = draw.numbers(width, flavour);
            const auto weight = draw.numbers(width, kPlain), bias = draw.numbers(width, kPlain);
            auto out = draw.numbers(width, kPlain);
            for (int add : {0, 1})
                ops.rms_norm(x.data(), weight.data(), out.data(), width, 1e-5f, add), digest.add(out);
            ops.layer_norm(x.data(), weight.data(), bias.data(), out.data(), width, 1e-5f), digest.add(out);
        }
    }
}

void rows(const tg_ops& ops, Draw& draw, Digest& digest) {
    for (Flavour flavour : kFlavours) {
        for (int width : {16, 512}) {  // gates, then ups
            const auto x = draw.numbers(2 * (size_t)width, flavour);
            std::vector<float> out(width);
            ops.swiglu(x.data(), out.data(), width), digest.add(out);
            ops.geglu(x.data(), out.data(), width), digest.add(out);
            ops.gelu(x.data(), out.data(), width), digest.add(out);
            ops.add_row(x.data(), out.data(), width - 5), digest.add(out);
            ops.scale_row(out.data(), 0.7f, width - 5), digest.add(out);
        }
    }
}

// Two sequences of up to 300 positions in shuffled pages, of one kind of numbers.
struct Cache {
    static constexpr int kWidth = 19, kHeads = 6, kKvHeads = 2, kRows = 9;
    int kv, dim, scales, block_bytes;  // scales: of K or V of one page
    std::vector<uint8_t> bytes;
    int32_t table[2 * kWidth], sequence[kRows] = {0, 0, 0, 0, 1, 1, 1, 1, 1},
                               position[kRows] = {9, 254, 255, 256, 0, 5, 15, 16, 299};
    Cache(Draw& draw, Flavour flavour, int dim, int kv)
        : kv(kv), dim(dim), scales(kv == TG_KV_Q8 ? (dim + 31) / 32 * TG_PAGE : 0) {
        block_bytes = 2 * (TG_PAGE * dim * (kv == TG_KV_F32 ? 4 : kv == TG_KV_F16 ? 2 : 1) + scales * 2);
        const size_t blocks = (size_t)2 * kWidth * kKvHeads, numbers = blocks * 2 * TG_PAGE * dim;
        if (kv == TG_KV_F32) {
            copy(draw.numbers(numbers, flavour));
        } else if (kv == TG_KV_F16) {
            copy(draw.halves(numbers, flavour));
        } else {
            bytes.resize(blocks * block_bytes);
            for (auto& b : bytes) b = (uint8_t)draw.bits();
            for (size_t half = 0; half < 2 * blocks; half++) {
                const auto drawn = draw.halves(scales, flavour);
                memcpy(bytes.data() + half * block_bytes / 2 + TG_PAGE * dim, drawn.data(), (size_t)scales * 2);
            }
        }
        for (int i = 0; i < 2 * kWidth; i++) table[i] = i * 7 % (2 * kWidth);
    }
    template <class T>
    void copy(const std::vector<T>& numbers) {
        const uint8_t* from = (const uint8_t*)numbers.data();
        bytes.assign(from, from + numbers.size() * sizeof(T));
    }
    template <class T>
    static std::vector<T> read(const uint8_t* from, size_t count) {
        std::vector<T> numbers(count);
        memcpy(numbers.data(), from, count * sizeof(T));
        return numbers;
    }
    void add_to(Digest& digest) const {  // as what they are: any NaN is like another
        if (kv == TG_KV_F32) return digest.add(read<float>(bytes.data(), bytes.size() / 4));
        if (kv == TG_KV_F16) return digest.add(read<uint16_t>(bytes.data(), bytes.size() / 2));
        for (size_t at = 0; at < bytes.size(); at += block_bytes / 2) {
            digest.add(read<int8_t>(bytes.data() + at, (size_t)TG_PAGE * dim));
            digest.add(read<uint16_t>(bytes.data() + at + TG_PAGE * dim, scales));
        }
    }
    template <class Job>
    void fill(Job& job) {
        job.pages = bytes.data(), job.page_table = table, job.sequence = sequence, job.position = position;
        job.table_width = kWidth, job.heads = kHeads, job.kv_heads = kKvHeads, job.head_dim = dim;
        job.kv = kv, job.block_bytes = block_bytes;
    }
};

void rope_store(const tg_ops& ops, Draw& draw, Digest& digest) {
    for (Flavour flavour : {kPlain, kWild}) {
        for (int dim : {16, 48, 64}) {
            for (int mode = 0; mode < 12; mode++) {
                const bool normed = mode & 1, partly = mode & 2;
                Cache cache(draw, kPlain, dim, mode / 4);
                const int stride = (Cache::kHeads + 2 * Cache::kKvHeads) * dim;
                auto qkv = draw.numbers((size_t)Cache::kRows * stride, flavour);
                const auto cos_sin = draw.numbers((size_t)300 * dim, kPlain), norm = draw.numbers(dim, kPlain);
                tg_rope_job job{};
                cache.fill(job);
                job.qkv = qkv.data(), job.cos_sin = cos_sin.data(), job.stride = stride;
                job.rotated = partly ? dim / 2 : dim, job.eps = 1e-6f;
                if (normed) job.q_norm = job.k_norm = norm.data();
                for (int row = 0; row < Cache::kRows; row++) ops.rope_store(&job, row);
                digest.add(qkv), cache.add_to(digest);
            }
        }
    }
}

// Spans as one block, and as blocks of their own whose partials are merged.
void attend(const tg_ops& ops, Draw& draw, Digest& digest) {
    for (Flavour flavour : {kPlain, kTies, kWild}) {
        for (int dim : {16, 48, 64}) {
            for (int kv : {TG_KV_F32, TG_KV_F16, TG_KV_Q8}) {
                Cache cache(draw, flavour, dim, kv);
                const auto q =
                    draw.numbers((size_t)Cache::kRows * Cache::kHeads * dim, flavour == kTies ? kTies : kPlain);
                for (int rows_per_block : {1, 3}) {
                    for (int mode = 0; mode < 4; mode++) {
                        const int spans = mode % 2 * 2;
                        std::vector<float> out(q.size()), partial((size_t)Cache::kRows * Cache::kHeads * 2 * (dim + 2));
                        tg_attention_job job{};
                        cache.fill(job);
                        job.q = q.data(), job.out = out.data(), job.partial = partial.data();
                        job.num_rows = Cache::kRows, job.q_stride = Cache::kHeads * dim;
                        job.rows_per_block = rows_per_block, job.spans = spans, job.scale = 0.125f;
                        job.window = mode < 2 ? INT32_MAX : 100, job.soft_cap = mode < 2 ? 0.0f : 5.0f;
                        const int row_blocks = (Cache::kRows + rows_per_block - 1) / rows_per_block;
                        for (int b = 0; b < row_blocks * Cache::kKvHeads * (spans ? spans : 1); b++)
                            ops.attend(&job, b);
                        for (int i = 0; spans && i < Cache::kRows * Cache::kHeads; i++) ops.attend_merge(&job, i);
                        digest.add(out), digest.add(partial);
                    }
                }
            }
        }
    }
}

void vocabulary(const tg_ops& ops, Draw& draw, Digest& digest) {
    for (Flavour flavour : kFlavours) {
        for (int n : {1, 7, 10, 16, 31, 1024, 1025, 4096}) {
            const auto logits = draw.numbers(n, flavour);
            std::vector<float> weights(n);
            digest.add((int32_t)ops.argmax(logits.data(), n));
            for (float temperature : {1.0f, 0.3f, 1e-6f}) {
                digest.add(ops.softmax(logits.data(), weights.data(), n, 3.0f, temperature));
                digest.add(weights);
            }
            for (float limit : {-INFINITY, -0.0f, 1.0f, INFINITY}) {
                digest.add((int32_t)ops.next_above(logits.data(), n / 3, n, limit));
                const tg_survey found = ops.survey(logits.data(), n, 3.0f, limit);
                digest.add(found.total), digest.add(found.below), digest.add(found.greater);
            }
        }
    }
}

void read_all(const tg_ops& ops, Draw& draw, Digest& digest) {
    std::vector<uint8_t> bytes(1000);
    for (auto& b : bytes) b = (uint8_t)draw.bits();
    digest.add((uint64_t)ops.read_all(bytes.data(), bytes.size()));
}

const struct {
    const char* name;
    void (*run)(const tg_ops&, Draw&, Digest&);
} kCases[] = {
    {"quantise", quantise}, {"norms", norms},           {"rows", rows},         {"rope_store", rope_store},
    {"attend", attend},     {"vocabulary", vocabulary}, {"read_all", read_all},
};
const struct {
    const char* name;
    void (*run)(const tg_ops&, Draw&, Digest&, const tg_kind&);
} kKindCases[] = {{"linear", linear}, {"embed", embed}};

template <class Run>
void print(const tg_ops& ops, const char* name, const char* kind, Run run) {
    Draw draw(1);
    Digest digest;
    run(draw, digest);
    printf("%s %s%s%s %016llx\n", ops.name, name, *kind ? ":" : "", kind, (unsigned long long)digest.value);
}

}  // namespace

int main() {
    for (const tg_ops* ops : tokenglass::runnable_isas()) {
        for (const auto& c : kCases) print(*ops, c.name, "", [&](auto&... rest) { c.run(*ops, rest...); });
        for (const auto& c : kKindCases)
            for (int i = 0; i < ops->num_kinds; i++) {
                const tg_kind& kind = ops->kinds[i];
                print(*ops, c.name, kind.name, [&](auto&... rest) { c.run(*ops, rest..., kind); });
            }
    }
}
