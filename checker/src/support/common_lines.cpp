#include "support/common_lines.hpp"

#include <algorithm>

namespace checker {

// The usual table serves: a trainer has two hundred lines.
std::vector<std::pair<size_t, size_t>> common_lines(std::span<const std::string_view> a,
                                                    std::span<const std::string_view> b) {
  const size_t n = a.size(), m = b.size();
  std::vector<std::vector<size_t>> length(n + 1, std::vector<size_t>(m + 1));
  for (size_t i = n; i-- > 0;) {
    for (size_t j = m; j-- > 0;) {
      length[i][j] =
          a[i] == b[j] ? length[i + 1][j + 1] + 1 : std::max(length[i + 1][j], length[i][j + 1]);
    }
  }
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0, j = 0; i < n && j < m;) {
    if (a[i] == b[j]) {
      pairs.emplace_back(i++, j++);
    } else {
      length[i + 1][j] >= length[i][j + 1] ? ++i : ++j;
    }
  }
  return pairs;
}

}  // namespace checker
