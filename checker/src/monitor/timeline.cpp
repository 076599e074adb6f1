#include "monitor/timeline.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "monitor/chart.hpp"
#include "monitor/figures.hpp"
#include "monitor/words.hpp"
#include "support/markup.hpp"
#include "support/text.hpp"

namespace checker::monitor {

namespace {

constexpr size_t kMostMarks = 14'000;  // of a figure
constexpr size_t kMostSteps = 40, kAroundSlowest = 7;
constexpr double kLane = 11, kRow = 30;
constexpr const char* kClasses = "dfboek";  // of phases, in their order
constexpr std::array<const char*, 6> kPhaseNames{"data",      "forward",    "backward",
                                                 "optimizer", "evaluation", "checkpoint"};

// Steps with spans, with the time from the first rank's begin to the last one's end.
std::map<uint64_t, std::pair<double, double>> detailed_steps(const Run& run) {
  std::map<uint64_t, std::pair<double, double>> steps;
  for (const auto& record : run.ranks) {
    for (const auto& span : record.spans) {
      if (static_cast<size_t>(span.phase) >= kStepPhases) continue;
      const auto [at, added] = steps.try_emplace(span.step, span.begin, span.end);
      if (added) continue;
      at->second.first = std::min(at->second.first, span.begin);
      at->second.second = std::max(at->second.second, span.end);
    }
  }
  return steps;
}

// Adds what lasted from `begin` to `end`, as far as it lies in the frame; else returns nothing.
pugi::xml_node add_mark(pugi::xml_node row, const std::string& css_class, double begin, double end,
                        const Frame& frame) {
  const double scale = kPlotWidth / (frame.to - frame.from);
  const double left = std::max(0.0, (begin - frame.from) * scale);
  const double right = std::min(kPlotWidth, (end - frame.from) * scale);
  if (right <= left) return {};
  return markup::add(
      row, "rect",
      {{"class", css_class}, {"x", fixed(left, 2)}, {"width", fixed(right - left, 3)}});
}

std::string class_of(size_t phase) { return {kClasses[phase]}; }

void add_spans(pugi::xml_node row, const RankRecord& record, Window window, const Frame& frame) {
  for (const auto& span : record.spans) {
    const auto phase = static_cast<size_t>(span.phase);
    if (phase < kStepPhases && (span.step < window.first || span.step > window.last)) continue;
    if (span.end < frame.from || span.begin > frame.to) continue;
    add_mark(row, class_of(phase), span.begin, span.end, frame);
  }
}

void add_calls(pugi::xml_node row, const RankRecord& record, const Frame& frame) {
  auto calls = markup::add(row, "g", {{"class", "calls"}});
  const char* const ended = tells_times(record) ? "c" : "q";
  for (const auto& call : record.collectives) {
    if (call.end < frame.from || call.begin > frame.to) continue;
    auto mark = add_mark(calls, call.failed ? "x" : ended, call.begin, call.end, frame);
    if (!mark) continue;
    markup::set(mark, {"data-t", std::string(collective_name(call.op_type)) + ", " +
                                     shown_bytes(static_cast<double>(call.bytes))});
  }
}

void add_legend(const Figure& figure, bool queued) {
  for (size_t i = 0; i < kPhaseNames.size(); ++i) {
    add_to_legend(figure, {"class", class_of(i)}, kPhaseNames.at(i));
  }
  add_to_legend(figure, {"class", queued ? "q" : "c"},
                queued
                    ? "collectives, from call to end, mostly in the GPU's queue (below each rank)"
                    : "collectives (below each rank)");
}

void draw_window(pugi::xml_node page, const Run& run, Window window, const std::string& title,
                 const std::map<uint64_t, std::pair<double, double>>& steps) {
  const Frame frame{.title = title,
                    .note = "steps " + std::to_string(window.first) + " to " +
                            std::to_string(window.last) + "; drag to zoom, double-click to go back",
                    .x_unit = "s",
                    .from = steps.at(window.first).first,
                    .to = steps.at(window.last).second,
                    .height = kRow * static_cast<double>(run.ranks.size())};
  const auto figure = add_figure(page, frame);
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    const double top = kRow * static_cast<double>(i);
    auto row =
        markup::add(figure.plot, "g", {{"transform", "translate(0 " + fixed(top + 3, 0) + ")"}});
    add_spans(row, run.ranks[i], window, frame);
    add_calls(row, run.ranks[i], frame);
    markup::add(figure.levels, "text",
                {{"x", fixed(kPlotLeft - 6, 0)}, {"y", fixed(kPlotTop + top + kLane + 3, 0)}},
                "rank " + std::to_string(run.ranks[i].rank()));
  }
  add_legend(figure, !std::ranges::all_of(run.ranks, tells_times));
}

uint64_t slowest_of(const std::map<uint64_t, std::pair<double, double>>& steps) {
  uint64_t slowest = steps.begin()->first;
  double longest = -1;
  size_t seen = 0;
  for (const auto& [number, time] : steps) {
    if (seen++ < 3 && steps.size() > 10) continue;  // the first ones warm up
    if (time.second - time.first > longest) {
      longest = time.second - time.first;
      slowest = number;
    }
  }
  return slowest;
}

}  // namespace

Window window_around(const Run& run, uint64_t middle, size_t most) {
  const auto steps = detailed_steps(run);
  std::map<uint64_t, size_t> marks;
  for (const auto& record : run.ranks) {
    for (const auto& span : record.spans) {
      if (static_cast<size_t>(span.phase) < kStepPhases) ++marks[span.step];
    }
  }
  size_t calls = 0;
  for (const auto& record : run.ranks) calls += record.collectives.size();
  const size_t per_step = steps.empty() ? 0 : calls / steps.size();
  auto first = steps.lower_bound(middle);
  if (first == steps.end()) --first;
  auto last = first;
  size_t count = marks[first->first] + per_step;
  // To both sides in turn, as long as steps follow each other and there is room.
  for (bool grows = true; grows;) {
    grows = false;
    const auto next = std::next(last);
    if (next != steps.end() && next->first == last->first + 1 &&
        count + marks[next->first] + per_step <= most) {
      count += marks[next->first] + per_step;
      last = next;
      grows = true;
    }
    if (first != steps.begin() && std::prev(first)->first + 1 == first->first &&
        count + marks[std::prev(first)->first] + per_step <= most) {
      --first;
      count += marks[first->first] + per_step;
      grows = true;
    }
    if (last->first - first->first + 1 >= kMostSteps) break;
  }
  return {first->first, last->first};
}

void draw_timelines(pugi::xml_node page, const Run& run) {
  const auto steps = detailed_steps(run);
  if (steps.empty()) {
    markup::add(page, "p", "No step was recorded.");
    return;
  }
  const auto middle =
      std::next(steps.begin(), static_cast<std::ptrdiff_t>(steps.size() / 2))->first;
  draw_window(page, run, window_around(run, middle, kMostMarks), "In the middle of the run", steps);
  if (steps.size() <= kAroundSlowest) return;
  const auto slowest = slowest_of(steps);
  auto window = window_around(run, slowest, kMostMarks);
  // Close around it: whole windows would look the same.
  window.first = std::max(window.first, slowest - std::min<uint64_t>(slowest, kAroundSlowest / 2));
  window.last = std::min(window.last, slowest + kAroundSlowest / 2);
  draw_window(page, run, window, "Around the slowest step, " + std::to_string(slowest), steps);
}

}  // namespace checker::monitor
