// Python's names for the cache and for attention over it.
#include "bind.h"
#include "rope_table.h"

namespace tokenglass {

namespace {

tg_kv kv_kind(const std::string& name) {
    if (name == "f32") return TG_KV_F32;
    if (name == "f16") return TG_KV_F16;
    require(name == "q8", "a cache holds f32, f16 or q8");
    return TG_KV_Q8;
}

class KVPages {
  public:
    KVPages(int64_t layers, int64_t pages, int64_t kv_heads, int64_t head_dim, const std::string& kind)
        : layers((int)layers),
          pages((int)pages),
          kv_heads((int)kv_heads),
          head_dim((int)head_dim),
          kind(kv_kind(kind)) {
        require(layers > 0 && pages > 0 && kv_heads > 0 && layers < 4096 && pages < (1 << 24) && kv_heads < 4096,
                "layers, pages and kv_heads must be positive");
        require(head_dim > 0 && head_dim % 16 == 0 && head_dim <= TG_MAX_HEAD_DIM,
                "head_dim must be a multiple of 16 up to 256");
        const int value_bytes = this->kind == TG_KV_F32 ? 4 : this->kind == TG_KV_F16 ? 2 : 1;
        const int scales = this->kind == TG_KV_Q8 ? (this->head_dim + 31) / 32 : 0;  // float16, of one position
        block_bytes = 2 * TG_PAGE * (this->head_dim * value_bytes + scales * 2);
        page_bytes = (size_t)block_bytes * kv_heads;
        layer_bytes = page_bytes * pages;
        require((double)layer_bytes * layers < 1e15, "the cache is too large");
        data.reset(
            static_cast<uint8_t*>(std::calloc(layer_bytes * layers + 64, 1)));  // pages are backed when first written
        if (!data) throw std::bad_alloc();
    }
    uint8_t* layer(int i) const { return data.get() + layer_bytes * i; }

    int layers, pages, kv_heads, head_dim;
    tg_kv kind;
    int block_bytes;  // K and V of one KV head in one page
    size_t page_bytes, layer_bytes;
    Aligned<uint8_t> data;
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

// Cosines and sines of a window. A position is computed when a text first comes near it: a long window has tens of
// megabytes of them, and most texts are short.
class RopeTable {
  public:
    RopeTable(const Array<float, 1>& inverse_frequency, int64_t context, float factor)
        : context((int)context), half((int)inverse_frequency.size()), factor_(factor) {
        require(context > 0 && context < (1 << 24) && half > 0, "context must be positive");
        for (int i = 0; i < half; i++) {
            require(std::fabs(inverse_frequency.data()[i]) <= 1e6f, "a frequency must be a finite number");
            inverse_frequency_.push_back(inverse_frequency.data()[i]);
        }
        data_ = aligned<float>((size_t)context * 2 * half);
    }
    const float* rows(int count) {  // the first `count` are there; not for two threads at once
        if (count > filled_) {
            const int end = std::min(context, (count + kStep - 1) / kStep * kStep);
            fill_rope_table(inverse_frequency_.data(), half, factor_, filled_, end, data_.get());
            filled_ = end;
        }
        return data_.get();
    }

    const int context, half;

  private:
    static constexpr int kStep = 128;
    const float factor_;
    std::vector<float> inverse_frequency_;
    Aligned<float> data_;
    int filled_ = 0;
};

class RopeStore {
  public:
    RopeStore(CpuPointer cpu, std::shared_ptr<RopeTable> cos_sin, std::shared_ptr<KVPages> pages, int64_t layer,
              int64_t heads, std::optional<Array<float, 1>> q_norm, std::optional<Array<float, 1>> k_norm, float eps)
        : cpu_(cpu), at_(pages, layer, heads), cos_sin_(cos_sin), q_norm_(q_norm), k_norm_(k_norm), eps_(eps) {
        if (cos_sin) {
            require(cos_sin->half <= pages->head_dim / 2, "cos_sin rotates more than head_dim dimensions");
            context_ = cos_sin->context, rotated_ = 2 * cos_sin->half;
        }
        for (const auto& norm : {q_norm, k_norm})
            require(!norm || (int)norm->size() == pages->head_dim, "a norm of heads needs head_dim weights");
        require(eps >= 0.0f, "eps must not be negative");
    }
    void operator()(Rows& qkv, const Batch& batch) {
        at_.check(qkv, batch);
        require(batch.last_position < context_, "position outside the context window");
        qkv.is_quantised = false;
        Timed timed(*cpu_);
        const tg_rope_job job{qkv.data.get(),
                              at_.pages->layer(at_.layer),
                              cos_sin_ ? cos_sin_->rows(batch.last_position + 1) : nullptr,
                              q_norm_ ? q_norm_->data() : nullptr,
                              k_norm_ ? k_norm_->data() : nullptr,
                              batch.page_table.data(),
                              batch.sequence.data(),
                              batch.position.data(),
                              batch.table_width,
                              qkv.width,
                              at_.heads,
                              at_.pages->kv_heads,
                              at_.pages->head_dim,
                              at_.pages->kind,
                              at_.pages->block_bytes,
                              rotated_,
                              eps_};
        WithoutGil gil(qkv.count);
        cpu_->each_row(qkv.count, 16, [&](int row) { cpu_->ops.rope_store(&job, row); });
    }
    bool stores(const Heads& at, int context) const {
        return at_.pages == at.pages && at_.layer == at.layer && at_.heads == at.heads && context_ >= context;
    }

  private:
    CpuPointer cpu_;
    Heads at_;
    std::shared_ptr<RopeTable> cos_sin_;
    std::optional<Array<float, 1>> q_norm_, k_norm_;  // kept alive
    int context_ = 1 << 24, rotated_ = 0;
    float eps_;
};

class Attention {
  public:
    Attention(CpuPointer cpu, std::shared_ptr<KVPages> pages, int64_t layer, int64_t heads, int64_t context,
              float scale, std::shared_ptr<RopeStore> before, int64_t window, float soft_cap)
        : cpu_(cpu),
          at_(pages, layer, heads),
          before_(before),
          context_((int)context),
          window_((int)window),
          scale_(scale),
          soft_cap_(soft_cap) {
        require(window >= 0 && window < (1 << 24), "window must not be negative");
        require(soft_cap >= 0.0f && soft_cap < INFINITY, "soft_cap must not be negative");
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
        const int rows_per_block = by_span || qkv.count < 16 ? 1 : 12;
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
                                   pages.kind,
                                   pages.block_bytes,
                                   window_ ? window_ : INT32_MAX,
                                   rows_per_block,
                                   by_span ? spans(batch.last_position) : 0,
                                   scale_,
                                   soft_cap_};
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
    int context_, max_rows_by_span_, window_;
    float scale_, soft_cap_;
};

}  // namespace

void bind_attention(nb::module_& m) {
    nb::class_<RopeTable>(m, "RopeTable")
        .def(nb::init<Array<float, 1>, int64_t, float>(), "inverse_frequency"_a.noconvert(), "context"_a,
             "factor"_a = 1.0f)
        .def("__len__", [](const RopeTable& t) { return t.context; })
        .def("numpy", [](nb::handle_t<RopeTable> self) {
            RopeTable& t = nb::cast<RopeTable&>(self);
            return nb::ndarray<nb::numpy, const float, nb::ndim<3>>(t.rows(t.context),
                                                                    {(size_t)t.context, 2, (size_t)t.half}, self);
        });

    nb::class_<KVPages>(m, "KVPages")
        .def(nb::init<int64_t, int64_t, int64_t, int64_t, const std::string&>(), "layers"_a, "pages"_a, "kv_heads"_a,
             "head_dim"_a, "kind"_a)
        .def_ro("layers", &KVPages::layers)
        .def_ro("pages", &KVPages::pages)
        .def_prop_ro("page_bytes", [](const KVPages& p) { return p.page_bytes * p.layers; })
        .def("raw", [](nb::handle_t<KVPages> self, int64_t layer) {
            KVPages& p = nb::cast<KVPages&>(self);
            require(layer >= 0 && layer < p.layers, "no such layer");
            return nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>(p.layer((int)layer), {p.layer_bytes}, self);
        });

    nb::class_<RopeStore>(m, "RopeStore")
        .def(nb::init<CpuPointer, std::shared_ptr<RopeTable>, std::shared_ptr<KVPages>, int64_t, int64_t,
                      std::optional<Array<float, 1>>, std::optional<Array<float, 1>>, float>(),
             "cpu"_a, "cos_sin"_a.none(), "pages"_a, "layer"_a, "heads"_a, "q_norm"_a.noconvert() = nb::none(),
             "k_norm"_a.noconvert() = nb::none(), "eps"_a = 0.0f)
        .def("__call__", &RopeStore::operator(), "qkv"_a, "batch"_a);
    nb::class_<Attention>(m, "Attention")
        .def(nb::init<CpuPointer, std::shared_ptr<KVPages>, int64_t, int64_t, int64_t, float,
                      std::shared_ptr<RopeStore>, int64_t, float>(),
             "cpu"_a, "pages"_a, "layer"_a, "heads"_a, "context"_a, "scale"_a, "before"_a = nb::none(), "window"_a = 0,
             "soft_cap"_a = 0.0f)
        .def("__call__", &Attention::operator(), "qkv"_a, "batch"_a, "out"_a);
}

}  // namespace tokenglass
