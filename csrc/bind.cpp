// The only file that knows Python: checks shapes, dtypes and ranges, decides how an operation is cut into blocks, and
// calls it. No arithmetic here. A wrong argument is a Python exception before anything is read or written.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>

#include "cpu.h"
#include "pack.h"
#include "rope_table.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace tokenglass;

namespace {

template <class T, int N>
using Array = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
using CpuPointer = std::shared_ptr<Cpu>;

// Messages are only made when they are needed: these run before every operation of every step.
inline void require(bool condition, const char* message) {
    if (!condition) throw nb::value_error(message);
}
inline void require_width(int width, int expected, const char* what) {
    if (width == expected) return;
    throw nb::value_error(
        (std::string(what) + " has width " + std::to_string(width) + ", expected " + std::to_string(expected)).c_str());
}

constexpr int kReleaseRows = 16;  // steps of fewer rows are over before another thread could use the lock

// Lets other Python threads run while a long operation works.
struct WithoutGil {
    explicit WithoutGil(int rows) {
        if (rows >= kReleaseRows) release.emplace();
    }
    std::optional<nb::gil_scoped_release> release;
};

class Matrix {
  public:
    Matrix(CpuPointer cpu, const std::string& format_name, Array<uint8_t, 1> raw, int64_t rows, int64_t cols,
           std::optional<Array<int32_t, 1>> order)
        : rows((int32_t)rows), cols((int32_t)cols) {
        const FileFormat* format = find_format(format_name.c_str());
        require(format, ("no panel kind for " + format_name).c_str());
        require(rows > 0 && cols > 0 && rows < (int64_t{1} << 30) && cols < (int64_t{1} << 30),
                "rows and cols must be positive");
        require(format->kind == TG_F32 || cols % TG_GROUP == 0, "columns must be a multiple of 32");
        require(raw.size() == (size_t)rows * (cols / format->values) * format->bytes,
                "raw bytes do not match rows and cols");
        if (order) {
            require((int64_t)order->size() == rows, "order must have one entry per row");
            for (size_t i = 0; i < order->size(); i++)
                require(order->data()[i] >= 0 && order->data()[i] < rows, "order holds a row that does not exist");
        }
        kind = format->kind;
        bytes_per_panel = panel_bytes(kind, this->cols);
        const int panels = (this->rows + TG_LANES - 1) / TG_LANES;
        num_bytes = bytes_per_panel * panels;
        data = cpu->weights.allocate(num_bytes);
        nb::gil_scoped_release release;
        const int step = 8;
        cpu->parallel((panels + step - 1) / step, [&](int block) {
            for (int p = block * step; p < panels && p < (block + 1) * step; p++)
                pack_panel(*format, raw.data(), this->rows, this->cols, order ? order->data() : nullptr, p,
                           data.get() + p * bytes_per_panel);
        });
    }
    tg_matrix view() const { return {data.get(), bytes_per_panel, kind, rows, cols, 0, 0}; }

    std::shared_ptr<uint8_t> data;
    size_t bytes_per_panel, num_bytes;
    tg_kind kind;
    int32_t rows, cols;
};

class Rows {
  public:
    Rows(int64_t capacity, int64_t width, bool quantised) : capacity((int)capacity), width((int)width) {
        require(capacity > 0 && width > 0 && capacity < (1 << 20) && width < (1 << 24),
                "capacity and width must be positive");
        require(!quantised || width % TG_GROUP == 0, "width must be a multiple of 32 to be quantised");
        const size_t n = (size_t)capacity * width;
        data = aligned<float>(n + TG_LANES, true);
        groups = quantised ? this->width / TG_GROUP : 0;
        if (quantised) {
            q = aligned<int8_t>(n);
            scale = aligned<float>((size_t)capacity * groups);
            scaled_sum = aligned<float>((size_t)capacity * groups);
            sum = aligned<int32_t>((size_t)capacity * groups);
        }
    }
    void set_count(int64_t n) {
        require(n >= 0 && n <= capacity, "more rows than the buffer's capacity");
        count = (int)n, is_quantised = false;
    }
    tg_rows view() const { return {data.get(), q.get(), scale.get(), scaled_sum.get(), sum.get(), width, groups}; }
    float* row(int i) const { return data.get() + (size_t)i * width; }

    int capacity, width, groups = 0, count = 0;
    bool is_quantised = false;  // q, scale and sums belong to data as it is now
    Aligned<float> data;
    Aligned<int8_t> q;
    Aligned<float> scale, scaled_sum;
    Aligned<int32_t> sum;
};

void check_rows(const Rows& x, int width, const char* what) { require_width(x.width, width, what); }

class KVPages {
  public:
    KVPages(int64_t layers, int64_t pages, int64_t kv_heads, int64_t head_dim, bool half)
        : layers((int)layers), pages((int)pages), kv_heads((int)kv_heads), head_dim((int)head_dim), half(half) {
        require(layers > 0 && pages > 0 && kv_heads > 0 && layers < 4096 && pages < (1 << 24) && kv_heads < 4096,
                "layers, pages and kv_heads must be positive");
        require(head_dim > 0 && head_dim % 16 == 0 && head_dim <= TG_MAX_HEAD_DIM,
                "head_dim must be a multiple of 16 up to 256");
        page_bytes = (size_t)2 * TG_PAGE * head_dim * kv_heads * (half ? 2 : 4);
        layer_bytes = page_bytes * pages;
        require((double)layer_bytes * layers < 1e15, "the cache is too large");
        data.reset(
            static_cast<uint8_t*>(std::calloc(layer_bytes * layers + 64, 1)));  // pages are backed when first written
        if (!data) throw std::bad_alloc();
    }
    uint8_t* layer(int i) const { return data.get() + layer_bytes * i; }

    int layers, pages, kv_heads, head_dim;
    bool half;
    size_t page_bytes, layer_bytes;
    Aligned<uint8_t> data;
};

class Batch {
  public:
    Batch(Array<int32_t, 1> ids, Array<int32_t, 1> position, Array<int32_t, 1> sequence, Array<int32_t, 2> page_table,
          Array<int32_t, 1> output_rows)
        : ids(ids.data(), ids.data() + ids.size()),
          position(position.data(), position.data() + position.size()),
          sequence(sequence.data(), sequence.data() + sequence.size()),
          page_table(page_table.data(), page_table.data() + page_table.size()),
          output_rows(output_rows.data(), output_rows.data() + output_rows.size()),
          table_width((int)page_table.shape(1)) {
        check((int)page_table.shape(0));
    }

    // (new ids, position of the first, pages of the whole sequence, how many of the last rows want logits)
    using Slice = std::tuple<std::vector<int32_t>, int32_t, std::vector<int32_t>, int32_t>;

    explicit Batch(const std::vector<Slice>& slices) : table_width(0) {
        for (const auto& slice : slices) table_width = std::max(table_width, (int)std::get<2>(slice).size());
        for (int index = 0; index < (int)slices.size(); index++) {
            const auto& [new_ids, start, pages, outputs] = slices[index];
            require(start >= 0 && start < (1 << 24) && new_ids.size() < (1 << 24), "start outside the window");
            require(outputs >= 0 && (size_t)outputs <= new_ids.size(), "more outputs than new ids");
            for (size_t i = 0; i < new_ids.size(); i++) {
                ids.push_back(new_ids[i]), position.push_back(start + (int)i), sequence.push_back(index);
            }
            for (int i = outputs; i > 0; i--) output_rows.push_back((int)ids.size() - i);
            page_table.insert(page_table.end(), pages.begin(), pages.end());
            page_table.resize((size_t)(index + 1) * table_width);
            require(new_ids.empty() || (start + new_ids.size() - 1) / TG_PAGE < pages.size(),
                    "position outside the pages");
        }
        check((int)slices.size());
    }
    int rows() const { return (int)ids.size(); }

    void check(int sequences) {
        require(rows() > 0, "a batch needs at least one row");
        require((int)position.size() == rows() && (int)sequence.size() == rows(),
                "ids, positions and sequences differ in length");
        for (int row = 0; row < rows(); row++) {
            require(sequence[row] >= 0 && sequence[row] < sequences, "sequence outside the page table");
            require(position[row] >= 0 && position[row] / TG_PAGE < table_width, "position outside the page table");
        }
        for (int row : output_rows) require(row >= 0 && row < rows(), "output row outside the batch");
        for (int page : page_table) require(page >= 0, "negative page");
        largest_id = *std::max_element(ids.begin(), ids.end());
        smallest_id = *std::min_element(ids.begin(), ids.end());
        last_position = *std::max_element(position.begin(), position.end());
        largest_page = page_table.empty() ? 0 : *std::max_element(page_table.begin(), page_table.end());
    }

    std::vector<int32_t> ids, position, sequence, page_table, output_rows;
    int table_width, largest_id, smallest_id, last_position, largest_page;
};

class Embedding {
  public:
    Embedding(CpuPointer cpu, std::shared_ptr<Matrix> matrix) : cpu_(cpu), matrix_(matrix), view_(matrix->view()) {}
    void operator()(const Batch& batch, Rows& out) {
        check_rows(out, view_.cols, "out");
        require(batch.smallest_id >= 0 && batch.largest_id < view_.rows, "token id outside the vocabulary");
        out.set_count(batch.rows());
        Timed timed(*cpu_);
        WithoutGil gil(batch.rows());
        cpu_->each_row(batch.rows(), 8, [&](int row) { cpu_->ops.embed(&view_, batch.ids[row], out.row(row)); });
    }

  private:
    CpuPointer cpu_;
    std::shared_ptr<Matrix> matrix_;
    tg_matrix view_;
};

// An operation from row to row. On its own it is called like every other; in front of a product it fills the product's
// scratch.
class RowOperation {
  public:
    explicit RowOperation(CpuPointer cpu) : cpu_(cpu) {}
    virtual ~RowOperation() = default;
    virtual int width_for(int out_width) const = 0;  // width of x
    virtual void row(const float* x, float* out, int out_width) const = 0;

    void operator()(const Rows& x, Rows& out) {
        prepare(x, out);
        Timed timed(*cpu_);
        WithoutGil gil(x.count);
        cpu_->each_row(x.count, 8, [&](int i) { row(x.row(i), out.row(i), out.width); });
    }
    void prepare(const Rows& x, Rows& out) const {
        check_rows(x, width_for(out.width), "x");
        out.set_count(x.count);
    }

  protected:
    CpuPointer cpu_;
};

class RMSNorm : public RowOperation {
  public:
    RMSNorm(CpuPointer cpu, Array<float, 1> weight, float eps)
        : RowOperation(cpu), width_((int)weight.size()), eps_(eps) {
        require(width_ > 0 && eps >= 0.0f, "a norm needs weights and a non-negative eps");
        weight_ = aligned<float>(width_ + TG_LANES, true);
        std::copy(weight.data(), weight.data() + width_, weight_.get());
    }
    int width_for(int out_width) const override {
        require_width(out_width, width_, "out");
        return width_;
    }
    void row(const float* x, float* out, int) const override {
        cpu_->ops.rms_norm(x, weight_.get(), out, width_, eps_);
    }

  private:
    int width_;
    float eps_;
    Aligned<float> weight_;
};

class SwiGLU : public RowOperation {
  public:
    using RowOperation::RowOperation;
    int width_for(int out_width) const override {
        require(out_width % TG_LANES == 0, "width must be a multiple of 16");
        return 2 * out_width;
    }
    void row(const float* x, float* out, int out_width) const override { cpu_->ops.swiglu(x, out, out_width); }
};

class Linear {
  public:
    Linear(CpuPointer cpu, std::vector<std::shared_ptr<Matrix>> matrices, bool exact, bool add,
           std::shared_ptr<RowOperation> before, std::shared_ptr<Rows> scratch)
        : cpu_(cpu), owners_(matrices), before_(before), scratch_(scratch), exact_(exact), add_(add) {
        require(!matrices.empty(), "a product needs a matrix");
        require(!before == !scratch, "an operation before the product needs scratch rows, and only that does");
        for (auto& m : matrices) {
            require(m && m->rows < (1 << 24) - width_, m ? "the product is too wide" : "a product needs a matrix");
            require(m->cols == matrices[0]->cols, "matrices of one product must have the same columns");
            views_.push_back(m->view());
            views_.back().out_offset = width_;
            width_ += m->rows;
            panels_ += (m->rows + TG_LANES - 1) / TG_LANES;
            needs_int8_ |= m->kind != TG_F32 && !exact;
            num_bytes_ += m->num_bytes;
        }
        cols_ = matrices[0]->cols;
        if (before) check_rows(*scratch, cols_, "scratch"), before->width_for(cols_);
        // Blocks of at most about 128 KiB of weights, at least eight for each thread.
        const int by_bytes = std::max(1, (int)(131072 / std::max<size_t>(1, matrices[0]->bytes_per_panel)));
        const int by_threads = std::max(1, panels_ / (8 * cpu->threads.num_threads()));
        panels_per_block_ = std::min(by_bytes, by_threads);
        if (panels_ / panels_per_block_ > (1 << 17)) panels_per_block_ = panels_ / (1 << 17) + 1;
        for (auto& v : views_) {
            v.first_block = panel_blocks_;
            panel_blocks_ += ((v.rows + TG_LANES - 1) / TG_LANES + panels_per_block_ - 1) / panels_per_block_;
        }
    }
    void operator()(Rows& x, Rows& out) {
        Rows& in = before_ ? *scratch_ : x;
        check_rows(out, width_, "out");
        if (before_) before_->prepare(x, in);
        check_rows(in, cols_, "x");
        require(&in != &out, "x and out must be two buffers");
        require(!needs_int8_ || in.groups, "x was made without its quantised form");
        const int rows = in.count;
        if (add_) {
            require(out.count == rows, "out must already hold the rows to add to");
            out.is_quantised = false;
        } else {
            out.set_count(rows);
        }
        Timed timed(*cpu_);
        WithoutGil gil(rows);
        const tg_rows view = in.view();
        const bool quantises = needs_int8_ && !in.is_quantised;
        if (before_ || quantises) {
            cpu_->each_row(rows, 8, [&](int row) {
                if (before_) before_->row(x.row(row), in.row(row), cols_);
                if (quantises) cpu_->ops.quantise(&view, row);
            });
            in.is_quantised |= quantises;
        }
        const int rows_per_block = 64, row_blocks = (rows + rows_per_block - 1) / rows_per_block;
        const tg_linear_job job{
            views_.data(), (int)views_.size(), panels_per_block_, rows, row_blocks, rows_per_block, exact_, add_,
            view,          out.data.get(),     out.width};
        cpu_->parallel(panel_blocks_ * row_blocks, [&](int block) { cpu_->ops.linear(&job, block); });
    }
    size_t num_bytes() const { return num_bytes_; }
    const std::vector<std::shared_ptr<Matrix>>& matrices() const { return owners_; }
    Cpu& cpu() const { return *cpu_; }

  private:
    CpuPointer cpu_;
    std::vector<std::shared_ptr<Matrix>> owners_;
    std::vector<tg_matrix> views_;
    std::shared_ptr<RowOperation> before_;
    std::shared_ptr<Rows> scratch_;
    bool exact_, add_, needs_int8_ = false;
    int width_ = 0, cols_ = 0, panels_ = 0, panels_per_block_ = 1, panel_blocks_ = 0;
    size_t num_bytes_ = 0;
};

// Where the heads of one layer lie in a row of q, k and v, and in the pages.
struct Heads {
    Heads(std::shared_ptr<KVPages> pages, int64_t layer, int64_t heads)
        : pages(pages), layer((int)layer), heads((int)heads) {
        require(layer >= 0 && layer < pages->layers, "no such layer");
        require(heads > 0 && heads < 4096 && heads % pages->kv_heads == 0, "heads must be a multiple of kv_heads");
    }
    int stride() const { return (heads + 2 * pages->kv_heads) * pages->head_dim; }
    void check(const Rows& qkv, const Batch& batch) const {
        check_rows(qkv, stride(), "qkv");
        require(qkv.count == batch.rows(), "qkv and batch differ in rows");
        require(batch.largest_page < pages->pages, "page outside the cache");
    }
    std::shared_ptr<KVPages> pages;
    int layer, heads;
};

class RopeStore {
  public:
    RopeStore(CpuPointer cpu, Array<float, 3> cos_sin, std::shared_ptr<KVPages> pages, int64_t layer, int64_t heads)
        : cpu_(cpu), at_(pages, layer, heads), cos_sin_(cos_sin), context_((int)cos_sin.shape(0)) {
        require(cos_sin.shape(1) == 2 && (int)cos_sin.shape(2) * 2 == pages->head_dim,
                "cos_sin must be [context, 2, head_dim / 2]");
    }
    void operator()(Rows& qkv, const Batch& batch) {
        at_.check(qkv, batch);
        require(batch.last_position < context_, "position outside the context window");
        qkv.is_quantised = false;
        Timed timed(*cpu_);
        WithoutGil gil(qkv.count);
        const tg_rope_job job{qkv.data.get(),
                              at_.pages->layer(at_.layer),
                              cos_sin_.data(),
                              batch.page_table.data(),
                              batch.sequence.data(),
                              batch.position.data(),
                              batch.table_width,
                              qkv.width,
                              at_.heads,
                              at_.pages->kv_heads,
                              at_.pages->head_dim,
                              at_.pages->half};
        cpu_->each_row(qkv.count, 16, [&](int row) { cpu_->ops.rope_store(&job, row); });
    }
    bool stores(const Heads& at, int context) const {
        return at_.pages == at.pages && at_.layer == at.layer && at_.heads == at.heads && context_ >= context;
    }

  private:
    CpuPointer cpu_;
    Heads at_;
    Array<float, 3> cos_sin_;  // keeps the table alive
    int context_;
};

class Attention {
  public:
    Attention(CpuPointer cpu, std::shared_ptr<KVPages> pages, int64_t layer, int64_t heads, int64_t context,
              float scale, std::shared_ptr<RopeStore> before)
        : cpu_(cpu), at_(pages, layer, heads), before_(before), context_((int)context), scale_(scale) {
        require(context > 0 && context < (1 << 24), "context must be positive");
        require(!before || before->stores(at_, context_),
                "the operation before stores another layer, other heads or a shorter context");
        // The partials belong to `cpu`, so only steps that keep the lock may use them.
        max_rows_by_span_ = std::min(4 * cpu->threads.num_threads() / pages->kv_heads + 1, kReleaseRows - 1);
        cpu_->partials((size_t)max_rows_by_span_ * at_.heads * spans(context_ - 1) * (pages->head_dim + 2));
    }
    void operator()(Rows& qkv, const Batch& batch, Rows& out) {
        at_.check(qkv, batch);
        const KVPages& pages = *at_.pages;
        check_rows(out, at_.heads * pages.head_dim, "out");
        require(batch.last_position < context_, "position outside the context window");
        out.set_count(qkv.count);
        if (before_) (*before_)(qkv, batch);
        Timed timed(*cpu_);
        WithoutGil gil(qkv.count);
        const bool by_span = qkv.count <= max_rows_by_span_ && batch.last_position >= TG_SPAN;
        const int rows_per_block = by_span || qkv.count < 16 ? 1 : 8;
        const int row_blocks = (qkv.count + rows_per_block - 1) / rows_per_block;
        const tg_attention_job job{qkv.data.get(),
                                   out.data.get(),
                                   pages.layer(at_.layer),
                                   batch.page_table.data(),
                                   batch.sequence.data(),
                                   batch.position.data(),
                                   cpu_->partials(0),
                                   batch.table_width,
                                   qkv.count,
                                   qkv.width,
                                   at_.heads,
                                   pages.kv_heads,
                                   pages.head_dim,
                                   pages.half,
                                   rows_per_block,
                                   by_span ? spans(batch.last_position) : 0,
                                   scale_};
        cpu_->parallel(row_blocks * pages.kv_heads * std::max(1, job.spans),
                       [&](int block) { cpu_->ops.attend(&job, block); });
        if (by_span) {
            for (int i = 0; i < qkv.count * at_.heads; i++) cpu_->ops.attend_merge(&job, i);
        }
    }

  private:
    static int spans(int last_position) { return last_position / TG_SPAN + 1; }
    CpuPointer cpu_;
    Heads at_;
    std::shared_ptr<RopeStore> before_;
    int context_, max_rows_by_span_;
    float scale_;
};

// Reads every byte of the products' weights once, the way a one-row step must, in one job: the limit that memory sets.
int64_t read_all(const std::vector<std::shared_ptr<Linear>>& products) {
    require(!products.empty() && products[0], "nothing to read");
    struct Stretch {
        const uint8_t* data;
        size_t bytes;
    };
    std::vector<Stretch> stretches;
    for (const auto& product : products) {
        require(bool(product), "nothing to read");
        for (const auto& m : product->matrices())
            for (size_t from = 0, step = size_t{1} << 17; from < m->num_bytes; from += step)
                stretches.push_back({m->data.get() + from, std::min(step, m->num_bytes - from)});
    }
    Cpu& cpu = products[0]->cpu();
    Timed timed(cpu);
    std::atomic<int64_t> total{0};
    cpu.parallel((int)stretches.size(),
                 [&](int i) { total += cpu.ops.read_all(stretches[i].data, stretches[i].bytes); });
    return total;
}

void take_outputs(const Rows& x, const Batch& batch, Rows& out) {
    check_rows(out, x.width, "out");
    require(x.count == batch.rows() && &x != &out, "x and batch differ in rows");
    out.set_count((int64_t)batch.output_rows.size());
    for (size_t i = 0; i < batch.output_rows.size(); i++)
        memcpy(out.row((int)i), x.row(batch.output_rows[i]), (size_t)x.width * 4);
}

void check_logits(const Rows& logits, int64_t row, int64_t vocab) {
    require(row >= 0 && row < logits.count, "no such row of logits");
    require(vocab > 0 && vocab <= logits.width, "vocabulary wider than the logits");
}

// Ids of the `num` largest logits, largest first, equals by id; NaN is left out.
std::vector<int32_t> best_ids(const tg_ops& ops, const float* z, int vocab, int num) {
    auto better = [z](int32_t a, int32_t b) { return z[a] > z[b] || (z[a] == z[b] && a < b); };
    std::vector<int32_t> ids;
    ids.reserve(num + 1);
    int i = 0;
    for (; i < vocab && (int)ids.size() < num; i++)
        if (!std::isnan(z[i])) ids.push_back(i);
    std::make_heap(ids.begin(), ids.end(), better);  // its front is the worst of the best
    while (!ids.empty() && (i = ops.next_above(z, i, vocab, z[ids.front()])) < vocab) {
        std::pop_heap(ids.begin(), ids.end(), better);
        ids.back() = i++;
        std::push_heap(ids.begin(), ids.end(), better);
    }
    std::sort(ids.begin(), ids.end(), better);
    return ids;
}

nb::object top(const tg_ops& ops, const Rows& logits, int64_t row, int64_t vocab, int64_t num) {
    check_logits(logits, row, vocab);
    require(num > 0, "num must be positive");
    auto* found = new std::vector<int32_t>(best_ids(ops, logits.row((int)row), (int)vocab, (int)std::min(num, vocab)));
    nb::capsule owner(found, [](void* p) noexcept { delete static_cast<std::vector<int32_t>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, int32_t, nb::ndim<1>>(found->data(), {found->size()}, owner));
}

// A row of logits is cut into stretches, which all threads share; their sums are joined in order.
int stretches(int64_t vocab) { return (int)((vocab + TG_STRETCH - 1) / TG_STRETCH); }
int stretch(int64_t vocab, int i) { return (int)std::min<int64_t>(TG_STRETCH, vocab - (int64_t)i * TG_STRETCH); }

// What the reasons of a choice need of a row, for the chosen token `id` and the `num` best.
nb::tuple survey(Cpu& cpu, const Rows& logits, int64_t row, int64_t vocab, int64_t id, int64_t num) {
    check_logits(logits, row, vocab);
    require(id >= 0 && id < vocab, "no such token");
    require(num >= 0, "num must not be negative");
    Timed timed(cpu);
    const float* z = logits.row((int)row);
    std::vector<int32_t> shown = best_ids(cpu.ops, z, (int)vocab, (int)std::min(std::max<int64_t>(num, 1), vocab));
    require(!shown.empty() && std::isfinite(z[shown[0]]), "no logit of this row is a finite number");
    const float largest = z[shown[0]];
    if (num == 0) shown.clear();
    if (std::find(shown.begin(), shown.end(), (int32_t)id) == shown.end()) shown.push_back((int32_t)id);
    // A token before `id` is better with the same logit already: there the limit lies one step lower.
    const float lower = std::nextafter(z[id], -INFINITY);
    const int own = (int)(id / TG_STRETCH);
    std::vector<tg_survey> parts((size_t)stretches(vocab));
    for (int i = 0; i < stretches(vocab); i++)
        parts[i] = cpu.ops.survey(z + (int64_t)i * TG_STRETCH, stretch(vocab, i), largest, i < own ? lower : z[id]);
    double total = 0.0, below = 0.0;
    int better = 0;
    for (const auto& part : parts) total += part.total, below += part.below, better += part.greater;
    for (int64_t i = (int64_t)own * TG_STRETCH; i < id; i++) better += z[i] == z[id];
    nb::list ids, scores;
    for (int32_t i : shown) ids.append(i), scores.append(z[i]);
    return nb::make_tuple(largest, total, below, better, ids, scores);
}

nb::tuple softmax_weights(Cpu& cpu, const Rows& logits, int64_t row, int64_t vocab, float temperature) {
    check_logits(logits, row, vocab);
    require(temperature > 0.0f, "temperature must be positive");
    Timed timed(cpu);
    const float* z = logits.row((int)row);
    const int best = cpu.ops.argmax(z, (int)vocab);
    require(best >= 0, "no logit of this row is a finite number");
    float* weights = new float[(size_t)vocab];
    nb::capsule owner(weights, [](void* p) noexcept { delete[] static_cast<float*>(p); });
    std::vector<float> parts((size_t)stretches(vocab));
    cpu.parallel(stretches(vocab), [&](int i) {
        const int64_t from = (int64_t)i * TG_STRETCH;
        parts[i] = cpu.ops.softmax(z + from, weights + from, stretch(vocab, i), z[best], temperature);
    });
    const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
    return nb::make_tuple(nb::ndarray<nb::numpy, float, nb::ndim<1>>(weights, {(size_t)vocab}, owner), sum);
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "The kernels. Documented in _native.pyi; the readable twins are in reference.py.";
    m.attr("PAGE") = (int)TG_PAGE;
    m.attr("GROUP") = (int)TG_GROUP;
    m.attr("SPAN") = (int)TG_SPAN;

    m.def("runnable_isas", [] {
        std::vector<std::string> names;
        for (auto* isa : runnable_isas()) names.emplace_back(isa->name);
        return names;
    });
    m.def("has_panels", [](const std::string& format) { return find_format(format.c_str()) != nullptr; });
    m.def(
        "rope_table",
        [](Array<float, 1> inverse_frequency, int64_t context) {
            require(context > 0 && context < (1 << 24) && inverse_frequency.size() > 0, "context must be positive");
            const size_t half = inverse_frequency.size();
            for (size_t i = 0; i < half; i++)
                require(std::fabs(inverse_frequency.data()[i]) <= 1e6f, "a frequency must be a finite number");
            float* table = new float[(size_t)context * 2 * half];
            nb::capsule owner(table, [](void* p) noexcept { delete[] static_cast<float*>(p); });
            {
                nb::gil_scoped_release release;
                fill_rope_table(inverse_frequency.data(), (int)half, (int)context, table);
            }
            return nb::ndarray<nb::numpy, float, nb::ndim<3>>(table, {(size_t)context, 2, half}, owner);
        },
        "inverse_frequency"_a.noconvert(), "context"_a);

    nb::class_<Cpu>(m, "Cpu")
        .def("__init__",
             [](Cpu* self, int num_threads, const std::string& isa) {
                 require(num_threads >= 1 && num_threads <= 1024, "num_threads must be between 1 and 1024");
                 for (auto* ops : runnable_isas())
                     if (isa == ops->name) return (void)new (self) Cpu(num_threads, ops);
                 throw nb::value_error(("this processor or build has no instruction set " + isa).c_str());
             })
        .def_prop_ro("num_threads", [](const Cpu& c) { return c.threads.num_threads(); })
        .def_prop_ro("isa", [](const Cpu& c) { return c.ops.name; })
        .def_rw("is_timed", &Cpu::is_timed)
        .def_rw("op_seconds", &Cpu::op_seconds)
        .def(
            "argmax",
            [](Cpu& cpu, const Rows& logits, int64_t row, int64_t vocab) {
                check_logits(logits, row, vocab);
                Timed timed(cpu);
                return cpu.ops.argmax(logits.row((int)row), (int)vocab);
            },
            "logits"_a, "row"_a, "vocab"_a)
        .def(
            "top",
            [](Cpu& cpu, const Rows& logits, int64_t row, int64_t vocab, int64_t num) {
                Timed timed(cpu);
                return top(cpu.ops, logits, row, vocab, num);
            },
            "logits"_a, "row"_a, "vocab"_a, "num"_a)
        .def("survey", &survey, "logits"_a, "row"_a, "vocab"_a, "id"_a, "num"_a)
        .def("softmax_weights", &softmax_weights, "logits"_a, "row"_a, "vocab"_a, "temperature"_a);

    nb::class_<Matrix>(m, "Matrix")
        .def(nb::init<CpuPointer, const std::string&, Array<uint8_t, 1>, int64_t, int64_t,
                      std::optional<Array<int32_t, 1>>>(),
             "cpu"_a, "format"_a, "raw"_a.noconvert(), "rows"_a, "cols"_a, "order"_a.noconvert() = nb::none())
        .def_ro("rows", &Matrix::rows)
        .def_ro("cols", &Matrix::cols)
        .def_ro("num_bytes", &Matrix::num_bytes);

    nb::class_<Rows>(m, "Rows")
        .def(nb::init<int64_t, int64_t, bool>(), "capacity"_a, "width"_a, "quantised"_a = false)
        .def_ro("capacity", &Rows::capacity)
        .def_ro("width", &Rows::width)
        .def_ro("count", &Rows::count)
        .def("numpy",
             [](nb::handle_t<Rows> self) {
                 Rows& rows = nb::cast<Rows&>(self);
                 return nb::ndarray<nb::numpy, float, nb::ndim<2>>(rows.data.get(),
                                                                   {(size_t)rows.count, (size_t)rows.width}, self);
             })
        .def(
            "fill",
            [](Rows& self, Array<float, 2> values) {
                require((int)values.shape(1) == self.width, "values have another width");
                self.set_count((int64_t)values.shape(0));
                std::copy(values.data(), values.data() + values.size(), self.data.get());
            },
            "values"_a.noconvert())
        .def("quantised", [](nb::handle_t<Rows> self) {
            Rows& r = nb::cast<Rows&>(self);
            require(r.is_quantised, "these rows have not been quantised");
            const size_t n = (size_t)r.count, w = (size_t)r.width, g = (size_t)r.groups;
            return nb::make_tuple(nb::ndarray<nb::numpy, int8_t, nb::ndim<2>>(r.q.get(), {n, w}, self),
                                  nb::ndarray<nb::numpy, float, nb::ndim<2>>(r.scale.get(), {n, g}, self),
                                  nb::ndarray<nb::numpy, int32_t, nb::ndim<2>>(r.sum.get(), {n, g}, self));
        });

    nb::class_<KVPages>(m, "KVPages")
        .def(nb::init<int64_t, int64_t, int64_t, int64_t, bool>(), "layers"_a, "pages"_a, "kv_heads"_a, "head_dim"_a,
             "half"_a)
        .def_ro("layers", &KVPages::layers)
        .def_ro("pages", &KVPages::pages)
        .def_prop_ro("page_bytes", [](const KVPages& p) { return p.page_bytes * p.layers; })
        .def("raw", [](nb::handle_t<KVPages> self, int64_t layer) {
            KVPages& p = nb::cast<KVPages&>(self);
            require(layer >= 0 && layer < p.layers, "no such layer");
            return nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>(p.layer((int)layer), {p.layer_bytes}, self);
        });

    nb::class_<Batch>(m, "Batch")
        .def(nb::init<Array<int32_t, 1>, Array<int32_t, 1>, Array<int32_t, 1>, Array<int32_t, 2>, Array<int32_t, 1>>(),
             "ids"_a.noconvert(), "position"_a.noconvert(), "sequence"_a.noconvert(), "page_table"_a.noconvert(),
             "output_rows"_a.noconvert())
        .def_static(
            "of_slices", [](const std::vector<Batch::Slice>& slices) { return std::make_shared<Batch>(slices); },
            "slices"_a)
        .def_prop_ro("rows", &Batch::rows);

    nb::class_<Embedding>(m, "Embedding")
        .def(nb::init<CpuPointer, std::shared_ptr<Matrix>>(), "cpu"_a, "matrix"_a)
        .def("__call__", &Embedding::operator(), "batch"_a, "out"_a);
    nb::class_<RowOperation>(m, "RowOperation").def("__call__", &RowOperation::operator(), "x"_a, "out"_a);
    nb::class_<RMSNorm, RowOperation>(m, "RMSNorm")
        .def(nb::init<CpuPointer, Array<float, 1>, float>(), "cpu"_a, "weight"_a.noconvert(), "eps"_a);
    nb::class_<SwiGLU, RowOperation>(m, "SwiGLU").def(nb::init<CpuPointer>(), "cpu"_a);
    nb::class_<Linear>(m, "Linear")
        .def(nb::init<CpuPointer, std::vector<std::shared_ptr<Matrix>>, bool, bool, std::shared_ptr<RowOperation>,
                      std::shared_ptr<Rows>>(),
             "cpu"_a, "matrices"_a, "exact"_a = false, "add"_a = false, "before"_a = nb::none(),
             "scratch"_a = nb::none())
        .def("__call__", &Linear::operator(), "x"_a, "out"_a)
        .def_prop_ro("num_bytes", &Linear::num_bytes);
    nb::class_<RopeStore>(m, "RopeStore")
        .def(nb::init<CpuPointer, Array<float, 3>, std::shared_ptr<KVPages>, int64_t, int64_t>(), "cpu"_a,
             "cos_sin"_a.noconvert(), "pages"_a, "layer"_a, "heads"_a)
        .def("__call__", &RopeStore::operator(), "qkv"_a, "batch"_a);
    nb::class_<Attention>(m, "Attention")
        .def(nb::init<CpuPointer, std::shared_ptr<KVPages>, int64_t, int64_t, int64_t, float,
                      std::shared_ptr<RopeStore>>(),
             "cpu"_a, "pages"_a, "layer"_a, "heads"_a, "context"_a, "scale"_a, "before"_a = nb::none())
        .def("__call__", &Attention::operator(), "qkv"_a, "batch"_a, "out"_a);

    m.def("read_all", &read_all, "products"_a);
    m.def("take_outputs", &take_outputs, "x"_a, "batch"_a, "out"_a);
}
