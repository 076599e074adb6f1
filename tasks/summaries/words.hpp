#pragma once
/// Text as words, and words as numbers.
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer.hpp"

namespace tasks::summaries {

/// The words of a text: what lies between blanks, ASCII letters lower-cased, and each mark of
/// punctuation at a word's start or end as a word of its own ("don't" and "1,099" are one word).
std::vector<std::string> words_of(std::string_view text);

/// How often each word was seen.
using Counts = std::unordered_map<std::string, int64_t>;

class Vocabulary : public Tokenizer {
 public:
  /// <pad>, <eos> and <unk>, numbered as T5 does, then the words, most frequent first, equally
  /// frequent ones in byte order; at most `most` in all (at least 3).
  Vocabulary(const Counts& counts, int64_t most);

  /// The numbers of the words, those it does not have as <unk>; at most `most` - 1 of them, and
  /// then <eos>. So no text is empty.
  std::vector<int32_t> ids(const std::vector<std::string>& words, int64_t most) const;

  const std::string& word(int64_t id) const { return words_.at(static_cast<size_t>(id)); }

  std::vector<int32_t> encode(const std::string& text, int64_t most) const override {
    return ids(words_of(text), most);
  }
  std::string decode(const std::vector<int64_t>& ids) const override;
  int64_t size() const override { return static_cast<int64_t>(words_.size()); }

 private:
  std::vector<std::string> words_;
  std::unordered_map<std::string_view, int32_t> ids_;  // into words_, which never changes again
};

}  // namespace tasks::summaries
