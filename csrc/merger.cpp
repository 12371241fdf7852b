#include "merger.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>

namespace tokenglass {
namespace {

size_t slots_for(int count) {
    size_t slots = 16;
    while (slots < 2 * (size_t)count) slots *= 2;
    return slots;
}
// Both halves of a product of 128 bits, with a factor that no file can know: texts and merges that all fall into one
// slot cannot be made up, and no id depends on it.
const uint64_t kFactor = std::random_device{}() | (uint64_t)std::random_device{}() << 32 | 1;
uint64_t mixed(uint64_t x) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = (Wide)(x ^ 0x9E3779B97F4A7C15) * kFactor;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}
uint64_t hash_of(std::string_view text) {
    uint64_t hash = text.size();
    for (; text.size() > 8; text.remove_prefix(8)) {
        uint64_t word;
        std::memcpy(&word, text.data(), 8);
        hash = mixed(hash ^ word);
    }
    uint64_t word = 0;
    if (!text.empty()) std::memcpy(&word, text.data(), text.size());
    return mixed(hash ^ word);
}
int utf8_length(unsigned char first) { return first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4; }

}  // namespace

Merger::Merger(Texts tokens, const int8_t* kinds) : tokens_(tokens), kinds_(kinds), ids_(slots_for(tokens.count), -1) {
    for (const bool control : {false, true})  // of equal texts the last counts, and a control token before all others
        for (int id = 0; id < tokens.count; id++) {
            if ((kinds[id] == kControl) != control) continue;
            size_t slot = hash_of(tokens[id]) & (ids_.size() - 1);
            while (ids_[slot] >= 0 && tokens[ids_[slot]] != tokens[id]) slot = (slot + 1) & (ids_.size() - 1);
            ids_[slot] = id;
        }
}

int Merger::id_of(std::string_view text) const {
    size_t slot = hash_of(text) & (ids_.size() - 1);
    while (ids_[slot] >= 0 && tokens_[ids_[slot]] != text) slot = (slot + 1) & (ids_.size() - 1);
    return ids_[slot];
}

int Merger::plain_id(std::string_view text) const {
    const int id = id_of(text);
    return id < 0 || kinds_[id] == kControl ? -1 : id;
}

Merger::Merge& Merger::merge_at(int left, int right) {
    const uint64_t pair = (uint64_t)left << 32 | (uint32_t)right;
    size_t slot = mixed(pair) & (merges_.size() - 1);
    while (merges_[slot].pair != pair && merges_[slot].pair != ~uint64_t{0}) slot = (slot + 1) & (merges_.size() - 1);
    return merges_[slot];
}

int Merger::set_merges(Texts merges) {
    merges_.assign(slots_for(merges.count), Merge{});
    std::string joined;
    for (int rank = 0; rank < merges.count; rank++) {
        const std::string_view both = merges[rank];
        const size_t space = both.find(' ');
        if (space == both.npos || both.find(' ', space + 1) != both.npos) return rank;
        const std::string_view left = both.substr(0, space), right = both.substr(space + 1);
        joined.assign(left).append(right);
        const int a = plain_id(left), b = plain_id(right), id = id_of(joined);
        if (id >= 0 && kinds_[id] == kControl) continue;
        if (a < 0 || b < 0 || id < 0) return rank;
        Merge& merge = merge_at(a, b);
        merge.pair = (uint64_t)a << 32 | (uint32_t)b, merge.rank = rank, merge.joined = id;
    }
    return -1;
}

void Merger::set_places(std::vector<int32_t> places, int unknown_id) {
    places_ = std::move(places), unknown_id_ = unknown_id;
}

void Merger::encode(std::string_view word, bool whole, std::vector<int32_t>& ids) {
    if (const int id = whole ? plain_id(word) : -1; id >= 0) {
        ids.push_back(id);
        return;
    }
    split(word);
    heap_.clear();
    for (int at = 0; at < (int)symbols_.size(); at++) push_pair(at);
    while (!heap_.empty()) {
        const Pair best = heap_.front();
        std::pop_heap(heap_.begin(), heap_.end());
        heap_.pop_back();
        Pair now;
        if (!find_pair(best.at, now) || now.joined != best.joined) continue;  // a neighbour has changed meanwhile
        Symbol &left = symbols_[best.at], &right = symbols_[left.next];
        left.id = best.joined, left.end = right.end, left.chars += right.chars, left.next = right.next;
        right.id = -1;
        if (left.next >= 0) symbols_[left.next].prev = best.at;
        if (left.prev >= 0) push_pair(left.prev);
        push_pair(best.at);
    }
    for (const Symbol& symbol : symbols_)
        if (symbol.id >= 0) ids.push_back(symbol.id);
}

// What the symbol at `at` and its neighbour would be. By score: the best place first, then the longest left part, then
// the longest right one, in characters.
bool Merger::find_pair(int at, Pair& pair) {
    const Symbol& left = symbols_[at];
    if (left.id < 0 || left.next < 0) return false;
    const Symbol& right = symbols_[left.next];
    pair.at = at;
    if (!merges_.empty()) {
        const Merge& merge = merge_at(left.id, right.id);
        pair.rank = (uint64_t)merge.rank, pair.joined = merge.joined;
        return merge.pair != ~uint64_t{0};
    }
    pair.joined = id_of(std::string_view(text_).substr(left.start, right.end - left.start));
    if (pair.joined < 0 || (kinds_[pair.joined] != kNormal && kinds_[pair.joined] != kUserDefined)) return false;
    constexpr uint64_t kMost = (1 << 21) - 1;
    const auto length = [=](int chars) { return kMost - std::min<uint64_t>(chars, kMost); };
    pair.rank = (uint64_t)places_[pair.joined] << 42 | length(left.chars) << 21 | length(right.chars);
    return true;
}

void Merger::push_pair(int at) {
    Pair pair;
    if (!find_pair(at, pair)) return;
    heap_.push_back(pair);
    std::push_heap(heap_.begin(), heap_.end());
}

void Merger::append(int id, int chars) {
    const int at = (int)symbols_.size(), start = (int)text_.size();
    if (at) symbols_.back().next = at;
    text_ += tokens_[id];
    symbols_.push_back({id, at - 1, -1, start, (int)text_.size(), chars});
}

// A symbol for each character. What the vocabulary does not know is left out, unless it goes by scores.
void Merger::split(std::string_view word) {
    text_.clear(), symbols_.clear();
    bool has_unknown = false;
    const auto append_unknown = [&] {
        if (has_unknown) append(unknown_id_, 1);
        has_unknown = false;
    };
    for (size_t at = 0; at < word.size();) {
        const std::string_view character = word.substr(at, utf8_length((unsigned char)word[at]));
        at += character.size();
        if (const int id = plain_id(character); id >= 0) {
            append_unknown();
            append(id, 1);
        } else if (!places_.empty()) {
            int bytes[4], num = 0;
            for (const char byte : character) {
                char name[8];
                std::snprintf(name, sizeof name, "<0x%02X>", (unsigned char)byte);
                const int byte_id = plain_id(name);
                if (byte_id >= 0) bytes[num++] = byte_id;
            }
            if (num == (int)character.size()) {
                for (int i = 0; i < num; i++) append(bytes[i], 6);
            } else {
                has_unknown = unknown_id_ >= 0;
            }
        }
    }
    append_unknown();
}

}  // namespace tokenglass
