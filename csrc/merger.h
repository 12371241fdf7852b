// Byte-pair encoding: joins neighbours in a word, the best pair first, until no pair of the vocabulary is left.
//
// Which pair is best is said by a list of merges (GPT-2), or by the scores of the joined tokens (SentencePiece); there
// no list is needed, the table of texts says what two neighbours would be. Ids and order are those of Hugging Face's
// `tokenizers` (models/bpe/word.rs, Apache-2.0), the oracle of the tests. Why it is here: notes.md.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokenglass {

struct Texts {  // strings as model files have them, each behind its length (formats/strings.py)
    const char* blob;
    const int64_t* offsets;  // [count + 1]
    int count;
    std::string_view operator[](int i) const {
        return {blob + offsets[i] + 8, (size_t)(offsets[i + 1] - offsets[i] - 8)};
    }
};

class Merger {
  public:
    enum Kind : int8_t { kNormal = 1, kControl = 3, kUserDefined = 4 };  // as in tokens/vocabulary.py

    Merger(Texts tokens, const int8_t* kinds);  // both must live as long as this

    // Merges in order, each two texts with a space between. Returns the first that is not two tokens, or -1. Those that
    // would give a control token are left out: no text gives one.
    int set_merges(Texts merges);
    // Instead of merges: places[i] is token i's place by score, 0 the best; of unknown characters the bytes are taken,
    // or else `unknown_id` once for all of them.
    void set_places(std::vector<int32_t> places, int unknown_id);

    // Appends the ids of a word. whole: a word that is a token stays whole.
    void encode(std::string_view word, bool whole, std::vector<int32_t>& ids);

  private:
    struct Symbol {
        int32_t id, prev, next;     // neighbours, -1: none; id -1: joined to the one before
        int32_t start, end, chars;  // in text_
    };
    struct Pair {  // two neighbours that can be joined
        uint64_t rank;
        int32_t joined, at;
        bool operator<(const Pair& other) const {  // the heap's top: the lowest rank, and of those the first
            return rank != other.rank       ? rank > other.rank
                   : joined != other.joined ? joined > other.joined
                                            : at > other.at;
        }
    };
    struct Merge {
        uint64_t pair = ~uint64_t{0};
        int32_t rank = 0, joined = 0;
    };
    int id_of(std::string_view text) const;  // -1: no token has this text
    int plain_id(std::string_view text) const;
    Merge& merge_at(int left, int right);
    bool find_pair(int at, Pair& pair);
    void push_pair(int at);
    void append(int id, int chars);
    void split(std::string_view word);

    Texts tokens_;
    const int8_t* kinds_;
    std::vector<int32_t> ids_;   // open addressing, a power of two of slots: ids, -1 where there is none
    std::vector<Merge> merges_;  // likewise, by both ids
    std::vector<int32_t> places_;
    int unknown_id_ = -1;
    std::string text_;  // of the word in hand: its first symbols' texts
    std::vector<Symbol> symbols_;
    std::vector<Pair> heap_;
};

}  // namespace tokenglass
