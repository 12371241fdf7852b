// Python's name for byte-pair encoding.
#include "bind.h"
#include "merger.h"

namespace tokenglass {
namespace {

using Offsets = Array<int64_t, 1>;

// The strings of a blob; every offset is checked.
Texts texts_of(const nb::bytes& blob, const Offsets& offsets) {
    require(offsets.size() >= 1 && offsets.size() < (1 << 24), "offsets must be [strings + 1]");
    for (size_t i = 0; i < offsets.size(); i++) {
        const int64_t lowest = i ? offsets.data()[i - 1] + 8 : 0;
        require(offsets.data()[i] >= lowest && offsets.data()[i] <= (int64_t)blob.size(), "offsets outside the blob");
    }
    return {blob.c_str(), offsets.data(), (int)offsets.size() - 1};
}

class BoundMerger {
  public:
    BoundMerger(nb::bytes tokens, Offsets offsets, Array<int8_t, 1> kinds)
        : tokens_(tokens), offsets_(offsets), kinds_(kinds), merger_(texts_of(tokens, offsets), checked(kinds)) {}
    int set_merges(const nb::bytes& merges, const Offsets& offsets) {
        return merger_.set_merges(texts_of(merges, offsets));
    }
    void set_places(const Array<int32_t, 1>& places, int unknown_id) {
        const int num_tokens = (int)kinds_.size();
        require((int)places.size() == num_tokens, "places must have one entry per token");
        require(unknown_id >= -1 && unknown_id < num_tokens, "unknown_id must be a token or -1");
        std::vector<int32_t> copy(places.data(), places.data() + places.size());
        for (const int place : copy) require(place >= 0 && place < (1 << 22), "a place must be below 2^22");
        merger_.set_places(std::move(copy), unknown_id);
    }
    std::vector<int32_t> encode(const std::vector<std::string>& words, bool whole) {
        std::vector<int32_t> ids;
        for (const auto& word : words) {
            require(word.size() < (size_t{1} << 28), "a word is too long");
            merger_.encode(word, whole, ids);
        }
        return ids;
    }

  private:
    const int8_t* checked(const Array<int8_t, 1>& kinds) const {
        require(kinds.size() + 1 == offsets_.size(), "kinds must have one entry per token");
        return kinds.data();
    }
    nb::bytes tokens_;  // kept alive, as the arrays
    Offsets offsets_;
    Array<int8_t, 1> kinds_;
    Merger merger_;
};

}  // namespace

void bind_merger(nb::module_& m) {
    nb::class_<BoundMerger>(m, "Merger")
        .def(nb::init<nb::bytes, Offsets, Array<int8_t, 1>>(), "tokens"_a, "offsets"_a.noconvert(),
             "kinds"_a.noconvert())
        .def("set_merges", &BoundMerger::set_merges, "merges"_a, "offsets"_a.noconvert())
        .def("set_places", &BoundMerger::set_places, "places"_a.noconvert(), "unknown_id"_a)
        .def("encode", &BoundMerger::encode, "words"_a, "whole"_a = false);
}

}  // namespace tokenglass
