#include <algorithm>

#include "bench/bench.hpp"
#include "bench/columns.hpp"
#include "bench/suite.hpp"
#include "support/text.hpp"

namespace checker::bench {

namespace {

constexpr const char* kSpeedUp = "speed-up";
constexpr const char* kBesidePython = "Python's best";

struct Column {
  const char* title;
  int digits;
};

Column column_of(const std::string& figure) {
  static const std::map<std::string, Column> known{{"step_ms", {"ms a step (least-most)", 3}},
                                                   {"least_ms", {"least ms", 3}},
                                                   {"most_ms", {"most ms", 3}},
                                                   {"tokens_per_s", {"tokens/s", 0}},
                                                   {"samples_per_s", {"samples/s", 1}},
                                                   {"peak_gib", {"peak GiB", 2}},
                                                   {"loss", {"loss", 4}},
                                                   {"steps", {"steps", 0}},
                                                   {"seconds", {"seconds", 1}}};
  return known.at(figure);
}

const double* figure_of(const std::optional<Measured>& measured, const std::string& name) {
  if (!measured) return nullptr;
  const auto found = measured->figures.find(name);
  return found == measured->figures.end() ? nullptr : &found->second;
}

// The more the better, whatever the figure is.
std::optional<double> rate_of(const SuiteTable& table, const std::optional<Measured>& measured) {
  const auto* value = figure_of(measured, table.compare);
  if (!value || *value <= 0) return std::nullopt;
  return table.compare.ends_with("_per_s") ? *value : 1 / *value;
}

std::string cell(const std::optional<Measured>& measured, const std::string& figure) {
  const auto* value = figure_of(measured, figure);
  if (!value) return "";
  const int digits = column_of(figure).digits;
  const auto *least = figure_of(measured, "least_ms"), *most = figure_of(measured, "most_ms");
  if (figure != "step_ms" || !least || !most) return fixed(*value, digits);
  return fixed(*value, digits) + " (" + fixed(*least, digits) + "-" + fixed(*most, digits) + ")";
}

std::string speed_up(const SuiteTable& table, const TableResults& results, size_t number) {
  const auto& row = table.rows[number];
  const auto rate = rate_of(table, results[number]);
  for (size_t i = 0; rate && row.ranks > 1 && i < table.rows.size(); ++i) {
    if (table.rows[i].label != row.label || table.rows[i].ranks != 1) continue;
    if (const auto one = rate_of(table, results[i])) return fixed(*rate / *one, 2);
  }
  return "";
}

// How many times the fastest of Python's rows of its group on as many ranks.
std::string beside_python(const SuiteTable& table, const TableResults& results, size_t number) {
  const auto& row = table.rows[number];
  const auto rate = rate_of(table, results[number]);
  if (!row.ours() || !rate) return "";
  double best = 0;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const auto& other = table.rows[i];
    if (other.ours() || other.ranks != row.ranks || other.group != row.group) continue;
    best = std::max(best, rate_of(table, results[i]).value_or(0));
  }
  return best > 0 ? fixed(*rate / best, 2) + " times" : "";
}

Row cells_of(const SuiteTable& table, const TableResults& results, size_t number) {
  const auto& row = table.rows[number];
  const auto& measured = results[number];
  Row cells{row.label, row.ours() ? "C++" : "Python", std::to_string(row.ranks)};
  for (const auto& figure : table.columns) cells.push_back(cell(measured, figure));
  if (!measured) {
    cells[3] = "not measured";
  } else if (!measured->failure.empty()) {
    cells[3] = "failed";
  }
  cells.push_back(speed_up(table, results, number));
  cells.push_back(beside_python(table, results, number));
  return cells;
}

// A column without any entry tells nothing.
void drop_empty_column(std::vector<Row>& rows, const char* title) {
  const auto found = std::ranges::find(rows.front(), title);
  const auto index = found - rows.front().begin();
  const bool any = std::any_of(rows.begin() + 1, rows.end(), [&](const Row& row) {
    return !row[static_cast<size_t>(index)].empty();
  });
  if (any) return;
  for (auto& row : rows) row.erase(row.begin() + index);
}

}  // namespace

std::vector<std::string> suite_lines(const SuiteTable& table, const TableResults& results,
                                     bool markdown) {
  Row titles{"what", "by", "ranks"};
  for (const auto& figure : table.columns) titles.emplace_back(column_of(figure).title);
  titles.emplace_back(kSpeedUp);
  titles.emplace_back(kBesidePython);
  std::vector<Row> rows{titles};
  for (size_t i = 0; i < table.rows.size(); ++i) rows.push_back(cells_of(table, results, i));
  drop_empty_column(rows, kSpeedUp);
  drop_empty_column(rows, kBesidePython);
  return lines_of(rows, /*words=*/2, markdown);
}

std::string suite_plot(const SuiteTable& table, const TableResults& results) {
  std::vector<Result> shown;
  bool any = false;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const auto rate = rate_of(table, results[i]);
    if (!rate) continue;
    const auto& row = table.rows[i];
    shown.push_back({.what = {.label = row.label, .ours = row.ours(), .ranks = row.ranks},
                     .timing = Timing{.tokens_per_s = *rate},
                     .failure = {}});
    any = any || !speed_up(table, results, i).empty();
  }
  return any ? scaling(shown) : "";
}

}  // namespace checker::bench
