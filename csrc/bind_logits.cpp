// Python's names for threads and instruction set, and for what is read from rows of logits.
#include <numeric>

#include "bind.h"

namespace tokenglass {

namespace {

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

void bind_logits(nb::module_& m) {
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
        .def(
            "reserve",
            [](Cpu& c, int64_t num_bytes) {
                require(num_bytes >= 0 && num_bytes < (int64_t{1} << 46), "num_bytes must be between 0 and 2^46");
                c.weights.reserve((size_t)num_bytes);
            },
            "num_bytes"_a)
        .def_rw("is_timed", &Cpu::is_timed)
        .def_rw("op_seconds", &Cpu::op_seconds)
        .def_rw("product_seconds", &Cpu::product_seconds)
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
}

}  // namespace tokenglass
