// What the files that know Python share: checks, buffers of rows, the batch, operations from row to row.
//
// `bind.cpp` (products and the module), `bind_rows.cpp` (buffers and row operations), `bind_attention.cpp` (cache and
// attention), `bind_logits.cpp` (reading scores) and `bind_merger.cpp` (ids of words) check shapes, dtypes and ranges,
// decide how an operation is cut into blocks, and call it. No arithmetic there. A wrong argument is a Python exception
// before anything is read or written.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "cpu.h"

namespace tokenglass {

namespace nb = nanobind;
using namespace nb::literals;

void bind_logits(nb::module_& m);     // Cpu
void bind_rows(nb::module_& m);       // Rows, Batch, row operations
void bind_attention(nb::module_& m);  // KVPages, RopeTable, RopeStore, Attention
void bind_merger(nb::module_& m);     // Merger

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

class Rows {
  public:
    Rows(int64_t capacity, int64_t width, bool quantised) : capacity((int)capacity), width((int)width) {
        require(capacity > 0 && width > 0 && capacity < (1 << 20) && width < (1 << 24),
                "capacity and width must be positive");
        require(!quantised || width % TG_GROUP == 0, "width must be a multiple of 32 to be quantised");
        const size_t n = (size_t)capacity * width;
        data = aligned<float>(n + TG_LANES);  // memory that no step has used costs nothing
        groups = quantised ? this->width / TG_GROUP : 0;
        if (quantised) quantised_ = aligned<tg_group>((size_t)(capacity + TG_TILE - 1) / TG_TILE * TG_TILE * groups);
    }
    void set_count(int64_t n) {
        require(n >= 0 && n <= capacity, "more rows than the buffer's capacity");
        count = (int)n, is_quantised = false;
    }
    tg_rows view() const { return {data.get(), quantised_.get(), width, groups}; }
    float* row(int i) const { return data.get() + (size_t)i * width; }

    int capacity, width, groups = 0, count = 0;
    bool is_quantised = false;  // the groups belong to data as it is now
    Aligned<float> data;
    Aligned<tg_group> quantised_;
};

inline void check_rows(const Rows& x, int width, const char* what) { require_width(x.width, width, what); }

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

}  // namespace tokenglass
