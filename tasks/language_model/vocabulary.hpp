#pragma once
/// Words as numbers.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tasks::language_model {

class Vocabulary {
 public:
  /// <unk>, <eos>, then the words of `text`, most frequent first, equally frequent ones in byte
  /// order; at most `most` entries in all (at least 2).
  Vocabulary(std::span<const std::string> text, int64_t most);

  /// The word's id; that of <unk> for a word that is not in it.
  int32_t id(std::string_view word) const;
  std::vector<int32_t> ids(std::span<const std::string> text) const;

  const std::string& word(int32_t id) const { return words_.at(static_cast<size_t>(id)); }
  int64_t size() const { return static_cast<int64_t>(words_.size()); }

 private:
  std::vector<std::string> words_;
  std::unordered_map<std::string_view, int32_t> ids_;  // into words_, which never changes again
};

}  // namespace tasks::language_model
