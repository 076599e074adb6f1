#include "monitor/compare.hpp"

#include <algorithm>

#include "monitor/chart.hpp"
#include "monitor/curves.hpp"
#include "monitor/page.hpp"
#include "monitor/words.hpp"
#include "support/markup.hpp"
#include "support/text.hpp"

namespace checker::monitor {

namespace {

// The cells of a row, without the label.
std::vector<std::string> cells_of(const ComparedRun& contestant, const Scaling& standing) {
  const auto& figures = contestant.figures;
  const bool trained = figures.steps > 0;
  return {std::to_string(contestant.run.ranks.size()),
          std::to_string(figures.steps),
          trained ? shown_seconds(figures.step_time) : "–",
          trained ? shown_count(figures.tokens_per_second) : "–",
          standing.speed_up > 0 ? fixed(standing.speed_up, 2) : "–",
          standing.speed_up > 0 ? shown_share(standing.efficiency) : "–",
          figures.last_loss ? fixed(*figures.last_loss, 3) : "–",
          shown_seconds(figures.duration),
          figures.gpus.empty() ? fixed(figures.core_hours, 3) + " core"
                               : fixed(figures.gpu_hours, 3) + " GPU"};
}

const std::vector<std::string>& headings() {
  static const std::vector<std::string> names{"ranks",     "steps",    "a step",
                                              "tokens/s",  "speed-up", "efficiency",
                                              "last loss", "duration", "hours"};
  return names;
}

Chart chart_of(const std::vector<ComparedRun>& runs, const std::string& title,
               const std::string& unit, std::vector<Point> (*points)(const Run&)) {
  Chart chart{.title = title, .x_unit = unit, .series = {}, .from_zero = false};
  for (const auto& one : runs) chart.series.push_back({one.label, points(one.run)});
  return chart;
}

// From a run's first step on: how long it took to start says nothing of its training.
std::vector<Point> loss_since_start(const Run& run) {
  auto points = loss_by_time(run);
  double first = run.duration();
  for (const auto& rank : run.ranks) {
    if (!rank.steps.empty()) first = std::min(first, rank.steps.front().begin);
  }
  for (auto& point : points) point.x -= first;
  return points;
}

// Columns of a terminal, not bytes.
size_t wide(const std::string& text) { return columns(text); }

}  // namespace

std::vector<Scaling> scaling_of(const std::vector<ComparedRun>& runs) {
  std::vector<Scaling> standings;
  const auto& first = runs.front();
  for (const auto& one : runs) {
    Scaling standing;
    if (first.figures.tokens_per_second > 0) {
      standing.speed_up = one.figures.tokens_per_second / first.figures.tokens_per_second;
      standing.efficiency = standing.speed_up * static_cast<double>(first.run.ranks.size()) /
                            static_cast<double>(one.run.ranks.size());
    }
    standings.push_back(standing);
  }
  return standings;
}

std::string to_comparison_page(const std::vector<ComparedRun>& runs) {
  const auto title = count_of(runs.size(), "run") + " side by side";
  pugi::xml_document page;
  markup::add(page, "h1", title);
  auto all_headings = headings();
  all_headings.insert(all_headings.begin(), "run");
  auto body = markup::add_table(markup::add(page, "div", {{"class", "scroll"}}), "comparison",
                                all_headings);
  const auto standings = scaling_of(runs);
  for (size_t i = 0; i < runs.size(); ++i) {
    markup::add_row(body, runs[i].label, cells_of(runs[i], standings[i]));
  }
  markup::add(
      page, "p", {{"class", "soft"}},
      "Speed-up: tokens/s divided by those of the first run. Efficiency: speed-up divided by the "
      "increase in ranks. 100 % is the best possible if each rank keeps its batch size.");
  draw(page, chart_of(runs, "Training loss against time", "s", loss_since_start));
  draw(page, chart_of(runs, "Training loss against steps", "step", loss_by_step));
  return whole_page(title, page);
}

std::vector<std::string> to_comparison_lines(const std::vector<ComparedRun>& runs) {
  std::vector<std::vector<std::string>> table{headings()};
  table.front().insert(table.front().begin(), "run");
  const auto standings = scaling_of(runs);
  for (size_t i = 0; i < runs.size(); ++i) {
    table.push_back(cells_of(runs[i], standings[i]));
    table.back().insert(table.back().begin(), runs[i].label);
  }
  std::vector<size_t> widths(table.front().size());
  for (const auto& row : table) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], wide(row[i]));
  }
  std::vector<std::string> lines;
  for (const auto& row : table) {
    std::string line = " ";
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - wide(row[i]), ' ');
      line += " " + (i == 0 ? row[i] + blanks : " " + blanks + row[i]);
    }
    lines.push_back(line);
  }
  return lines;
}

}  // namespace checker::monitor
