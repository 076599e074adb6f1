#include "bench/bench.hpp"
#include "bench/columns.hpp"
#include "support/text.hpp"

namespace checker::bench {

namespace {

const Row kTitles{"step", "by", "ranks", "ms (least-most)", "tokens/s", "of limit", "speed-up"};

std::string speed_up(const std::vector<Result>& results, const Result& result) {
  const auto* one = alone(results, result);
  if (result.what.ranks == 1 || one == nullptr) return "";
  return fixed(result.timing->tokens_per_s / one->timing->tokens_per_s, 2);
}

Row row_of(const std::vector<Result>& results, const Result& result) {
  Row row{result.what.label, result.what.ours ? "C++" : "Python",
          std::to_string(result.what.ranks)};
  row.resize(kTitles.size());
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

}  // namespace

std::vector<std::string> table(const std::vector<Result>& results, bool markdown) {
  std::vector<Row> rows{kTitles};
  for (const auto& result : results) rows.push_back(row_of(results, result));
  return lines_of(rows, /*words=*/2, markdown);
}

}  // namespace checker::bench
