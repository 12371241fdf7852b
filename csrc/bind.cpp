// The Python module: weights and their products; the other files with `bind` in their names add the rest (bind.h).
#include <atomic>

#include "bind.h"

using namespace tokenglass;

namespace {

class Matrix {
  public:
    static constexpr size_t kStretchBytes = size_t{8} << 20;

    Matrix(CpuPointer cpu, const std::string& format, Array<uint8_t, 1> raw, int64_t rows, int64_t cols,
           std::optional<Array<int32_t, 1>> order, std::optional<Array<float, 1>> bias,
           std::optional<nb::callable> release)
        : kind(find_kind(cpu->ops, format)), rows((int32_t)rows), cols((int32_t)cols) {
        require(kind, ("no panel kind for " + format).c_str());
        require(rows > 0 && cols > 0 && rows < (int64_t{1} << 30) && cols < (int64_t{1} << 30),
                "rows and cols must be positive");
        require(cols % kind->columns == 0, ("columns must be a multiple of " + std::to_string(kind->columns)).c_str());
        const int blocks = this->cols / kind->columns;
        const size_t row_bytes = (size_t)blocks * kind->file_bytes;
        require(raw.size() == (size_t)rows * row_bytes, "raw bytes do not match rows and cols");
        if (order) {
            require((int64_t)order->size() == rows, "order must have one entry per row");
            for (size_t i = 0; i < order->size(); i++)
                require(order->data()[i] >= 0 && order->data()[i] < rows, "order holds a row that does not exist");
        }
        const int panels = (this->rows + TG_LANES - 1) / TG_LANES;
        if (bias) {
            require((int64_t)bias->size() == rows, "bias must have one entry per row");
            this->bias = aligned<float>((size_t)panels * TG_LANES, true);
            for (int i = 0; i < this->rows; i++) this->bias[i] = bias->data()[order ? order->data()[i] : i];
        }
        bytes_per_panel = (size_t)blocks * kind->piece_bytes;
        num_bytes = bytes_per_panel * panels;
        data = cpu->weights.allocate(num_bytes);
        const std::vector<uint8_t> zeros(row_bytes);  // the rows past the end
        const auto pack = [&](int p) {
            const uint8_t* lanes[TG_LANES];
            for (int lane = 0; lane < TG_LANES; lane++) {
                const int row = p * TG_LANES + lane;
                lanes[lane] =
                    row >= this->rows ? zeros.data() : raw.data() + row_bytes * (order ? order->data()[row] : row);
            }
            kind->pack(lanes, blocks, data.get() + p * bytes_per_panel);
        };
        // In stretches of some megabytes, so that neither memory nor the processor's cache holds all of `raw` as well.
        const int stretch = order ? panels : std::max(1, (int)(kStretchBytes / bytes_per_panel));
        for (int first = 0; first < panels; first += stretch) {
            const int last = std::min(panels, first + stretch);
            {
                nb::gil_scoped_release without_gil;
                cpu->parallel(last - first, [&](int i) { pack(first + i); });
            }
            if (release) (*release)(row_bytes* std::min(this->rows, last * TG_LANES));
        }
    }
    static const tg_kind* find_kind(const tg_ops& ops, const std::string& format) {
        for (int i = 0; i < ops.num_kinds; i++)
            if (format == ops.kinds[i].name) return &ops.kinds[i];
        return nullptr;
    }
    tg_matrix view() const { return {data.get(), bytes_per_panel, bias.get(), kind, rows, cols, 0, 0}; }

    std::shared_ptr<uint8_t> data;
    Aligned<float> bias;
    size_t bytes_per_panel, num_bytes;
    const tg_kind* kind;
    int32_t rows, cols;
};

class Embedding {
  public:
    Embedding(CpuPointer cpu, std::shared_ptr<Matrix> matrix, float scale)
        : cpu_(cpu), matrix_(matrix), view_(matrix->view()), scale_(scale) {}
    void operator()(const Batch& batch, Rows& out) {
        check_rows(out, view_.cols, "out");
        require(batch.smallest_id >= 0 && batch.largest_id < view_.rows, "token id outside the vocabulary");
        out.set_count(batch.rows());
        Timed timed(*cpu_);
        WithoutGil gil(batch.rows());
        cpu_->each_row(batch.rows(), 8, [&](int row) {
            view_.kind->embed(&view_, batch.ids[row], out.row(row));
            if (scale_ != 1.0f) cpu_->ops.scale_row(out.row(row), scale_, out.width);
        });
    }

  private:
    CpuPointer cpu_;
    std::shared_ptr<Matrix> matrix_;
    tg_matrix view_;
    float scale_;
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
            needs_int8_ |= !m->kind->is_float && !exact;
            num_bytes_ += m->num_bytes;
            num_weights_ += (int64_t)m->rows * m->cols;
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
        const int rows_per_block = 8 * TG_TILE, row_blocks = (rows + rows_per_block - 1) / rows_per_block;
        const tg_linear_job job{
            views_.data(), (int)views_.size(), panels_per_block_, rows, row_blocks, rows_per_block, exact_, add_,
            view,          out.data.get(),     out.width};
        Timed products(*cpu_, &Cpu::product_seconds);
        cpu_->parallel(panel_blocks_ * row_blocks, [&](int block) { cpu_->ops.linear(&job, block); });
    }
    size_t num_bytes() const { return num_bytes_; }
    int64_t num_weights() const { return num_weights_; }
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
    int64_t num_weights_ = 0;
};

// Reads every byte of the products' weights once, the way a one-row step must, in one job: the limit that memory sets.
int64_t read_all(const std::vector<std::shared_ptr<Linear>>& products, const CpuPointer& with) {
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
    Cpu& cpu = with ? *with : products[0]->cpu();
    Timed timed(cpu);
    std::atomic<int64_t> total{0};
    cpu.parallel((int)stretches.size(),
                 [&](int i) { total += cpu.ops.read_all(stretches[i].data, stretches[i].bytes); });
    return total;
}

// Multiplies int8 in all threads, without memory, and returns how many multiply-adds that were.
int64_t int8_peak(Cpu& cpu, int64_t blocks) {
    require(blocks > 0 && blocks <= (1 << 20), "blocks must be between 1 and 2^20");
    alignas(64) uint8_t w[12 * 64];
    alignas(64) int8_t x[64];
    for (int i = 0; i < 12 * 64; i++) w[i] = (uint8_t)(i * 7 / 3 % 16);
    for (int i = 0; i < 64; i++) x[i] = (int8_t)(i - 20);
    std::atomic<int64_t> total{0};  // a result that is used is computed
    cpu.parallel((int)blocks, [&](int) { total += cpu.ops.int8_peak(w, x); });
    require(total != 0, "the products summed to nothing");
    return blocks * TG_PEAK_DOTS * 64;
}

void take_outputs(const Rows& x, const Batch& batch, Rows& out) {
    check_rows(out, x.width, "out");
    require(x.count == batch.rows() && &x != &out, "x and batch differ in rows");
    out.set_count((int64_t)batch.output_rows.size());
    for (size_t i = 0; i < batch.output_rows.size(); i++)
        memcpy(out.row((int)i), x.row(batch.output_rows[i]), (size_t)x.width * 4);
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
    m.def("has_panels",
          [](const std::string& format) { return Matrix::find_kind(*runnable_isas()[0], format) != nullptr; });
    bind_logits(m);
    bind_rows(m);
    bind_attention(m);
    bind_merger(m);
    nb::class_<Matrix>(m, "Matrix")
        .def(nb::init<CpuPointer, const std::string&, Array<uint8_t, 1>, int64_t, int64_t,
                      std::optional<Array<int32_t, 1>>, std::optional<Array<float, 1>>, std::optional<nb::callable>>(),
             "cpu"_a, "format"_a, "raw"_a.noconvert(), "rows"_a, "cols"_a, "order"_a.noconvert() = nb::none(),
             "bias"_a.noconvert() = nb::none(), "release"_a = nb::none())
        .def_ro("rows", &Matrix::rows)
        .def_ro("cols", &Matrix::cols)
        .def_ro("num_bytes", &Matrix::num_bytes);

    nb::class_<Embedding>(m, "Embedding")
        .def(nb::init<CpuPointer, std::shared_ptr<Matrix>, float>(), "cpu"_a, "matrix"_a, "scale"_a = 1.0f)
        .def("__call__", &Embedding::operator(), "batch"_a, "out"_a);
    nb::class_<Linear>(m, "Linear")
        .def(nb::init<CpuPointer, std::vector<std::shared_ptr<Matrix>>, bool, bool, std::shared_ptr<RowOperation>,
                      std::shared_ptr<Rows>>(),
             "cpu"_a, "matrices"_a, "exact"_a = false, "add"_a = false, "before"_a = nb::none(),
             "scratch"_a = nb::none())
        .def("__call__", &Linear::operator(), "x"_a, "out"_a)
        .def_prop_ro("num_bytes", &Linear::num_bytes)
        .def_prop_ro("num_weights", &Linear::num_weights);
    m.def("read_all", &read_all, "products"_a, "cpu"_a = nb::none());
    m.def("int8_peak", &int8_peak, "cpu"_a, "blocks"_a);
    m.def("take_outputs", &take_outputs, "x"_a, "batch"_a, "out"_a);
}
