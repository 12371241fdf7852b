// Python's names for buffers of rows, the batch and the operations from row to row.
#include "bind.h"

namespace tokenglass {

namespace {

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
        .def("quantised", [](nb::handle_t<Rows> self) {
            Rows& r = nb::cast<Rows&>(self);
            require(r.is_quantised, "these rows have not been quantised");
            const size_t n = (size_t)r.count, w = (size_t)r.width, g = (size_t)r.groups;
            return nb::make_tuple(nb::ndarray<nb::numpy, int8_t, nb::ndim<2>>(r.q.get(), {n, w}, self),
                                  nb::ndarray<nb::numpy, float, nb::ndim<2>>(r.scale.get(), {n, g}, self),
                                  nb::ndarray<nb::numpy, int32_t, nb::ndim<2>>(r.sum.get(), {n, g}, self));
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
    nb::class_<SwiGLU, RowOperation>(m, "SwiGLU").def(nb::init<CpuPointer>(), "cpu"_a);
}

}  // namespace tokenglass
