#include "rouge.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace tasks::summaries {
namespace {

double f1(size_t both, size_t candidate, size_t reference) {
  // 2 P R / (P + R) with P = both / candidate and R = both / reference.
  return both == 0 ? 0 : 2 * double(both) / double(candidate + reference);
}

template <class Gram>
double shared_grams(const std::vector<Gram>& candidate, const std::vector<Gram>& reference) {
  std::map<Gram, size_t> left;
  for (const auto& gram : reference) ++left[gram];
  size_t both = 0;
  for (const auto& gram : candidate) {
    const auto found = left.find(gram);
    if (found == left.end() || found->second == 0) continue;
    --found->second;
    ++both;
  }
  return f1(both, candidate.size(), reference.size());
}

std::vector<std::pair<int64_t, int64_t>> pairs_in(const std::vector<int64_t>& words) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (size_t i = 1; i < words.size(); ++i) pairs.emplace_back(words[i - 1], words[i]);
  return pairs;
}

// By dynamic programming; one row of the table at a time.
size_t longest_common(const std::vector<int64_t>& one, const std::vector<int64_t>& other) {
  std::vector<size_t> row(other.size() + 1, 0);
  for (const auto word : one) {
    size_t diagonal = 0;
    for (size_t j = 1; j < row.size(); ++j) {
      const auto above = row[j];
      row[j] = word == other[j - 1] ? diagonal + 1 : std::max(above, row[j - 1]);
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

Rouge rouge(const std::vector<int64_t>& candidate, const std::vector<int64_t>& reference) {
  return {.one = shared_grams(candidate, reference),
          .two = shared_grams(pairs_in(candidate), pairs_in(reference)),
          .longest = f1(longest_common(candidate, reference), candidate.size(), reference.size())};
}

}  // namespace tasks::summaries
