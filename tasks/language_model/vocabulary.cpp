#include "vocabulary.hpp"

#include <algorithm>

#include "text.hpp"

namespace tasks::language_model {

Vocabulary::Vocabulary(std::span<const std::string> text, int64_t most) {
  std::unordered_map<std::string_view, int64_t> counts;
  for (const auto& word : text) ++counts[word];
  counts.erase(unknown_word);
  counts.erase(end_of_line);
  std::vector<std::pair<std::string_view, int64_t>> order(counts.begin(), counts.end());
  std::sort(order.begin(), order.end(), [](const auto& left, const auto& right) {
    return std::pair(-left.second, left.first) < std::pair(-right.second, right.first);
  });
  words_ = {unknown_word, end_of_line};
  for (const auto& [word, count] : order) {
    if (size() >= most) break;
    words_.emplace_back(word);
  }
  for (size_t id = 0; id < words_.size(); ++id) ids_[words_[id]] = static_cast<int32_t>(id);
}

int32_t Vocabulary::id(std::string_view word) const {
  const auto found = ids_.find(word);
  return found == ids_.end() ? 0 : found->second;
}

std::vector<int32_t> Vocabulary::ids(std::span<const std::string> text) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size());
  for (const auto& word : text) ids.push_back(id(word));
  return ids;
}

}  // namespace tasks::language_model
