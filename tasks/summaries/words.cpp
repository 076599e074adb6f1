#include "words.hpp"

#include <algorithm>

#include "transformer.hpp"

namespace tasks::summaries {
namespace {

bool is_mark(char letter) {
  const auto byte = static_cast<unsigned char>(letter);
  const bool is_alphanumeric =
      (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
  return byte > ' ' && byte < 0x7F && !is_alphanumeric;
}

void append_word(std::string_view chunk, std::vector<std::string>& words) {
  size_t first = 0, last = chunk.size();
  for (; first < last && is_mark(chunk[first]); ++first) words.emplace_back(1, chunk[first]);
  while (last > first && is_mark(chunk[last - 1])) --last;
  if (last > first) {
    auto& word = words.emplace_back(chunk.substr(first, last - first));
    for (auto& letter : word) {
      if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    }
  }
  for (; last < chunk.size(); ++last) words.emplace_back(1, chunk[last]);
}

}  // namespace

std::vector<std::string> words_of(std::string_view text) {
  constexpr std::string_view kBlanks(" \t\r\n\v\f\0", 7);
  std::vector<std::string> words;
  while (true) {
    const auto start = text.find_first_not_of(kBlanks);
    if (start == std::string_view::npos) return words;
    text.remove_prefix(start);
    const auto end = std::min(text.find_first_of(kBlanks), text.size());
    append_word(text.substr(0, end), words);
    text.remove_prefix(end);
  }
}

Vocabulary::Vocabulary(const Counts& counts, int64_t most) {
  std::vector<std::pair<int64_t, std::string_view>> order;
  order.reserve(counts.size());
  for (const auto& [word, count] : counts) order.emplace_back(-count, word);
  std::ranges::sort(order);
  words_ = {"<pad>", "<eos>", "<unk>"};
  for (const auto& [count, word] : order) {
    if (size() >= most) break;
    words_.emplace_back(word);
  }
  for (size_t id = 0; id < words_.size(); ++id) ids_[words_[id]] = static_cast<int32_t>(id);
}

std::vector<int32_t> Vocabulary::ids(const std::vector<std::string>& words, int64_t most) const {
  std::vector<int32_t> ids;
  const auto kept = std::min(words.size(), static_cast<size_t>(most - 1));
  ids.reserve(kept + 1);
  for (size_t i = 0; i < kept; ++i) {
    const auto found = ids_.find(words[i]);
    ids.push_back(found == ids_.end() ? static_cast<int32_t>(kUnknown) : found->second);
  }
  ids.push_back(static_cast<int32_t>(kEnd));
  return ids;
}

std::string Vocabulary::decode(const std::vector<int64_t>& ids) const {
  std::string text;
  for (const auto id : ids) text += (text.empty() ? "" : " ") + word(id);
  return text;
}

}  // namespace tasks::summaries
