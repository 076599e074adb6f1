#include "bench/columns.hpp"

#include <algorithm>

#include "support/text.hpp"

namespace checker::bench {

namespace {

std::string aligned(const Row& row, const std::vector<size_t>& widths, size_t words) {
  std::string line;
  for (size_t i = 0; i < row.size(); ++i) {
    const std::string space(widths[i] - row[i].size(), ' ');
    line += (i > 0 ? "  " : "") + (i < words ? row[i] + space : space + row[i]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::vector<std::string> lines_of(const std::vector<Row>& rows, size_t words, bool markdown) {
  const size_t columns = rows.front().size();
  std::vector<std::string> lines;
  if (markdown) {
    for (const auto& row : rows) {
      lines.push_back("| " + join(row, " | ") + " |");
      if (lines.size() > 1) continue;
      lines.emplace_back("|");
      for (size_t i = 0; i < columns; ++i) lines.back() += i < words ? "---|" : "---:|";
    }
    return lines;
  }
  std::vector<size_t> widths(columns);
  for (const auto& row : rows) {
    for (size_t i = 0; i < columns; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) lines.push_back(aligned(row, widths, words));
  return lines;
}

}  // namespace checker::bench
