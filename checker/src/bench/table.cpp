#include <algorithm>
#include <array>

#include "bench/bench.hpp"
#include "support/text.hpp"

namespace checker::bench {

namespace {

using Row = std::array<std::string, 7>;

const Row kTitles{"step", "by", "ranks", "ms (least-most)", "tokens/s", "of limit", "speed-up"};

std::string speed_up(const std::vector<Result>& results, const Result& result) {
  const auto* one = alone(results, result);
  if (result.what.ranks == 1 || one == nullptr) return "";
  return fixed(result.timing->tokens_per_s / one->timing->tokens_per_s, 2);
}

Row row_of(const std::vector<Result>& results, const Result& result) {
  Row row{result.what.label, result.what.ours ? "C++" : "Python",
          std::to_string(result.what.ranks)};
  if (result.what.nodes > 1) row[2] += " on " + std::to_string(result.what.nodes) + " nodes";
  if (!result.timing) {
    row[3] = "failed";
    return row;
  }
  const auto& timing = *result.timing;
  row[3] = fixed(timing.step_ms, 3) + " (" + fixed(timing.least_ms, 3) + "-" +
           fixed(timing.most_ms, 3) + ")";
  row[4] = fixed(timing.tokens_per_s, 0);
  if (timing.limit_ms) row[5] = fixed(100 * *timing.limit_ms / timing.step_ms, 0) + " %";
  row[6] = speed_up(results, result);
  return row;
}

// Columns of numbers end alike, those of words begin alike.
std::string aligned(const Row& row, const std::array<size_t, 7>& widths) {
  std::string line;
  for (size_t i = 0; i < row.size(); ++i) {
    const std::string space(widths[i] - row[i].size(), ' ');
    line += (i > 0 ? "  " : "") + (i < 2 ? row[i] + space : space + row[i]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::vector<std::string> table(const std::vector<Result>& results, bool markdown) {
  std::vector<Row> rows{kTitles};
  for (const auto& result : results) rows.push_back(row_of(results, result));
  std::vector<std::string> lines;
  if (markdown) {
    for (const auto& row : rows) {
      lines.push_back("| " + join(row, " | ") + " |");
      if (lines.size() == 1) lines.push_back("|---|---|---:|---:|---:|---:|---:|");
    }
    return lines;
  }
  std::array<size_t, 7> widths{};
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) lines.push_back(aligned(row, widths));
  return lines;
}

}  // namespace checker::bench
