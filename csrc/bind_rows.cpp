// Python's names for buffers of rows, the batch and the operations from row to row.
#include "bind.h"

namespace tokenglass {

namespace {

// Weights of a norm, filled up with zeros.
Aligned<float> norm_weights(const Array<float, 1>& weight, float eps) {
    require(weight.size() > 0 && weight.size() < (1 << 24) && eps >= 0.0f,
            "a norm needs weights and a non-negative eps");
    Aligned<float> copy = aligned<float>(weight.size() + TG_LANES, true);
    std::copy(weight.data(), weight.data() + weight.size(), copy.get());
    return copy;
}

class RMSNorm : public RowOperation {
  public:
    RMSNorm(CpuPointer cpu, Array<float, 1> weight, float eps)
        : RowOperation(cpu), width_((int)weight.size()), eps_(eps), weight_(norm_weights(weight, eps)) {}
    int width_for(int out_width) const override {
        require_width(out_width, width_, "out");
        return width_;
    }
    void row(const float* x, float* out, int) const override {
        cpu_->ops.rms_norm(x, weight_.get(), out, width_, eps_, 0);
    }

  private:
    int width_;
    float eps_;
    Aligned<float> weight_;
};

class LayerNorm : public RowOperation {
  public:
    LayerNorm(CpuPointer cpu, Array<float, 1> weight, Array<float, 1> bias, float eps)
        : RowOperation(cpu),
          width_((int)weight.size()),
          eps_(eps),
          weight_(norm_weights(weight, eps)),
          bias_(norm_weights(bias, eps)) {
        require(bias.size() == weight.size(), "weight and bias differ in length");
    }
    int width_for(int out_width) const override {
        require_width(out_width, width_, "out");
        return width_;
    }
    void row(const float* x, float* out, int) const override {
        cpu_->ops.layer_norm(x, weight_.get(), bias_.get(), out, width_, eps_);
    }

  private:
    int width_;
    float eps_;
    Aligned<float> weight_, bias_;
};

// Not a RowOperation: what it writes to must already hold rows.
class AddNorm {
  public:
    AddNorm(CpuPointer cpu, Array<float, 1> weight, float eps)
        : cpu_(cpu), width_((int)weight.size()), eps_(eps), weight_(norm_weights(weight, eps)) {}
    void operator()(const Rows& x, Rows& out) {
        check_rows(x, width_, "x");
        check_rows(out, width_, "out");
        require(&x != &out, "x and out must be two buffers");
        require(out.count == x.count, "out must already hold the rows to add to");
        out.is_quantised = false;
        Timed timed(*cpu_);
        WithoutGil gil(x.count);
        cpu_->each_row(x.count, 8,
                       [&](int i) { cpu_->ops.rms_norm(x.row(i), weight_.get(), out.row(i), width_, eps_, 1); });
    }

  private:
    CpuPointer cpu_;
    int width_;
    float eps_;
    Aligned<float> weight_;
};

// An activation: out gets a row of `kParts` * its own width.
template <int kParts, auto kFunction>
class Activation : public RowOperation {
  public:
    using RowOperation::RowOperation;
    int width_for(int out_width) const override {
        require(out_width % TG_LANES == 0, "width must be a multiple of 16");
        return kParts * out_width;
    }
    void row(const float* x, float* out, int out_width) const override { (cpu_->ops.*kFunction)(x, out, out_width); }
};
using SwiGLU = Activation<2, &tg_ops::swiglu>;
using GeGLU = Activation<2, &tg_ops::geglu>;
using GELU = Activation<1, &tg_ops::gelu>;

class PositionEmbedding {
  public:
    PositionEmbedding(CpuPointer cpu, Array<float, 2> table) : cpu_(cpu), table_(table) {
        require(table.shape(0) > 0 && table.shape(1) > 0 && table.shape(0) < (1 << 24) && table.shape(1) < (1 << 24),
                "a table of positions needs rows");
    }
    void operator()(const Batch& batch, Rows& x) {
        const int width = (int)table_.shape(1);
        check_rows(x, width, "x");
        require(x.count == batch.rows(), "x and batch differ in rows");
        require(batch.last_position < (int)table_.shape(0), "position outside the context window");
        x.is_quantised = false;
        Timed timed(*cpu_);
        WithoutGil gil(x.count);
        cpu_->each_row(x.count, 8, [&](int i) {
            cpu_->ops.add_row(table_.data() + (size_t)batch.position[i] * width, x.row(i), width);
        });
    }

  private:
    CpuPointer cpu_;
    Array<float, 2> table_;  // keeps it alive
};

// A numpy array [rows, columns] that deletes `values` when it goes.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<2>> owned(std::vector<T>* values, std::initializer_list<size_t> shape) {
    nb::capsule owner(values, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<2>>(values->data(), shape, owner);
}

}  // namespace

void bind_rows(nb::module_& m) {
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
        .def("quantised", [](const Rows& r) {
            require(r.is_quantised, "these rows have not been quantised");
            const tg_rows view = r.view();
            const size_t n = (size_t)r.count, groups = (size_t)r.groups;
            auto* q = new std::vector<int8_t>(n * groups * TG_GROUP);
            auto* scale = new std::vector<float>(n * groups);
            auto* zero = new std::vector<int32_t>(n * groups);
            for (int row = 0; row < r.count; row++) {
                for (int g = 0; g < r.groups; g++) {
                    const tg_group& group = *tg_group_of(&view, row, g);
                    const size_t at = (size_t)row * groups + g;
                    memcpy(q->data() + at * TG_GROUP, group.q, TG_GROUP);
                    (*scale)[at] = group.scale, (*zero)[at] = group.all.zero;
                }
            }
            return nb::make_tuple(owned(q, {n, groups * TG_GROUP}), owned(scale, {n, groups}),
                                  owned(zero, {n, groups}));
        });

    nb::class_<Batch>(m, "Batch")
        .def(nb::init<Array<int32_t, 1>, Array<int32_t, 1>, Array<int32_t, 1>, Array<int32_t, 2>, Array<int32_t, 1>>(),
             "ids"_a.noconvert(), "position"_a.noconvert(), "sequence"_a.noconvert(), "page_table"_a.noconvert(),
             "output_rows"_a.noconvert())
        .def_static(
            "of_slices", [](const std::vector<Batch::Slice>& slices) { return std::make_shared<Batch>(slices); },
            "slices"_a)
        .def_prop_ro("rows", &Batch::rows);

    nb::class_<RowOperation>(m, "RowOperation").def("__call__", &RowOperation::operator(), "x"_a, "out"_a);
    nb::class_<RMSNorm, RowOperation>(m, "RMSNorm")
        .def(nb::init<CpuPointer, Array<float, 1>, float>(), "cpu"_a, "weight"_a.noconvert(), "eps"_a);
    nb::class_<LayerNorm, RowOperation>(m, "LayerNorm")
        .def(nb::init<CpuPointer, Array<float, 1>, Array<float, 1>, float>(), "cpu"_a, "weight"_a.noconvert(),
             "bias"_a.noconvert(), "eps"_a);
    nb::class_<AddNorm>(m, "AddNorm")
        .def(nb::init<CpuPointer, Array<float, 1>, float>(), "cpu"_a, "weight"_a.noconvert(), "eps"_a)
        .def("__call__", &AddNorm::operator(), "x"_a, "out"_a);
    nb::class_<SwiGLU, RowOperation>(m, "SwiGLU").def(nb::init<CpuPointer>(), "cpu"_a);
    nb::class_<GeGLU, RowOperation>(m, "GeGLU").def(nb::init<CpuPointer>(), "cpu"_a);
    nb::class_<GELU, RowOperation>(m, "GELU").def(nb::init<CpuPointer>(), "cpu"_a);
    nb::class_<PositionEmbedding>(m, "PositionEmbedding")
        .def(nb::init<CpuPointer, Array<float, 2>>(), "cpu"_a, "table"_a.noconvert())
        .def("__call__", &PositionEmbedding::operator(), "batch"_a, "x"_a);
}

}  // namespace tokenglass
