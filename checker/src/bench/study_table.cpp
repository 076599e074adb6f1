#include <cstdio>

#include "bench/columns.hpp"
#include "bench/study.hpp"
#include "support/text.hpp"

namespace checker::bench {

namespace {

std::string short_number(double value) {
  std::string text(32, '\0');
  const int size = std::snprintf(text.data(), text.size(), "%.4g", value);
  text.resize(static_cast<size_t>(size));
  return text;
}

Row row_of(const TrialResult& result) {
  const auto& what = result.what;
  Row row{std::to_string(what.samples_a_step()), std::to_string(what.ranks),
          short_number(what.learning_rate), std::to_string(what.steps)};
  if (what.times > 1) {
    row[2] += what.scaled ? ", times sqrt(" + std::to_string(what.times) + ")" : ", unchanged";
  }
  if (!result.failure.empty()) {
    row.insert(row.end(), {"failed", ""});
    return row;
  }
  std::string loss = fixed(result.mean_loss(), 4);
  if (result.runs.size() > 1) {
    loss += " (" + fixed(result.least_loss(), 4) + "-" + fixed(result.most_loss(), 4) + ")";
  }
  row.insert(row.end(), {loss, fixed(result.mean_seconds(), 1)});
  return row;
}

}  // namespace

std::vector<std::string> study_table(const std::vector<TrialResult>& results, bool markdown) {
  std::vector<Row> rows{{"samples a step", "ranks", "learning rate", "steps",
                         "validation loss (least-most)", "seconds"}};
  for (const auto& result : results) rows.push_back(row_of(result));
  return lines_of(rows, /*words=*/0, markdown);
}

}  // namespace checker::bench
