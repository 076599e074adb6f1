#include <algorithm>
#include <cmath>

#include "bench/bench.hpp"
#include "bench/canvas.hpp"
#include "support/text.hpp"

namespace checker::bench {

namespace {

constexpr double kBar = 18, kGap = 8, kLabels = 190;

std::string full_label(const Result& result) {
  return (result.what.ours ? "C++ " : "Python ") + result.what.label;
}

/// Where speed-ups are drawn.
struct Axes {
  double most;  // ranks, and times as fast
  double x(double ranks) const { return kLeft + kWidth * ranks / most; }
  double y(double speed_up) const { return kTop + kHeight * (1 - speed_up / most); }
};

void add_grid(pugi::xml_node svg, const Axes& axes) {
  add_line(svg, axes.x(0), axes.y(0), axes.x(axes.most), axes.y(0), {{"class", "axis"}});
  add_line(svg, axes.x(0), axes.y(0), axes.x(0), axes.y(axes.most), {{"class", "axis"}});
  for (int tick = 1; tick <= static_cast<int>(axes.most); ++tick) {
    add_text_at(svg, axes.x(tick), axes.y(0) + 18, std::to_string(tick), "middle");
    add_text_at(svg, axes.x(0) - 8, axes.y(tick) + 4, std::to_string(tick), "end");
  }
  add_text_at(svg, axes.x(axes.most / 2), axes.y(0) + 36, "ranks", "middle");
  add_line(svg, axes.x(0), axes.y(0), axes.x(axes.most), axes.y(axes.most),
           {{"stroke", "#8c959f"}, {"stroke-dasharray", "6 4"}});
}

// From complete overlap of the all-reduce with the step to none.
void add_band(pugi::xml_node svg, const Axes& axes, const Timing& one, const Result& many,
              const char* colour) {
  if (!many.timing->all_reduce_ms) return;
  const auto ranks = static_cast<double>(many.what.ranks);
  const auto bounds = model(one, *many.timing);
  const auto speed_up = [&](double ms) { return ranks * one.step_ms / ms; };
  add_line(svg, axes.x(ranks), axes.y(speed_up(bounds.hidden_ms)), axes.x(ranks),
           axes.y(speed_up(bounds.exposed_ms)),
           {{"stroke-width", "6"}, {"stroke-opacity", "0.35"}, {"stroke", colour}});
}

// For ranks on two nodes: they are on no line from one rank to many on one.
void add_cross(pugi::xml_node svg, double x, double y, const char* colour) {
  const Attributes paint{{"stroke-width", "2"}, {"stroke", colour}};
  add_line(svg, x - 4, y - 4, x + 4, y + 4, paint);
  add_line(svg, x - 4, y + 4, x + 4, y - 4, paint);
}

// Draws one rank, the line to more ranks, and beside it what ran on two nodes. Returns whether
// there is a line.
bool add_series(pugi::xml_node svg, const Axes& axes, const std::vector<Result>& results,
                const Result& one, const char* colour) {
  double x = axes.x(1), y = axes.y(1);
  add_dot(svg, x, y, colour, one.what.ours);
  bool any = false;
  for (const auto& other : results) {
    if (other.what.ranks == 1 || !other.timing || alone(results, other) != &one) continue;
    const double speed_up = other.timing->tokens_per_s / one.timing->tokens_per_s;
    const double to_x = axes.x(static_cast<double>(other.what.ranks)), to_y = axes.y(speed_up);
    if (other.what.nodes > 1) {
      add_cross(svg, to_x, to_y, colour);
      continue;
    }
    add_band(svg, axes, *one.timing, other, colour);
    add_line(svg, x, y, to_x, to_y, {{"stroke", colour}});
    add_dot(svg, to_x, to_y, colour, one.what.ours);
    x = to_x, y = to_y, any = true;
  }
  return any;
}

}  // namespace

std::string bars(const std::vector<Result>& results) {
  std::vector<const Result*> shown;
  double longest = 0;
  for (const auto& result : results) {
    if (result.what.ranks != 1 || !result.timing) continue;
    shown.push_back(&result);
    longest = std::max(longest, result.timing->step_ms);
  }
  const double height = kTop + static_cast<double>(shown.size()) * (kBar + kGap) + 30;
  pugi::xml_document document;
  auto svg = begin_plot(document, kLabels + kWidth + 80, height, "Milliseconds a step on one rank");
  double y = kTop;
  for (const auto* result : shown) {
    const double scale = kWidth / longest;
    const double length = result->timing->step_ms * scale;
    add_text_at(svg, kLabels - 8, y + 13, full_label(*result), "end");
    markup::add(svg, "rect",
                {{"x", fixed(kLabels, 1)},
                 {"y", fixed(y, 1)},
                 {"width", fixed(length, 1)},
                 {"height", fixed(kBar, 1)},
                 {"fill", result->what.ours ? kColours[0] : kColours[5]}});
    add_text_at(svg, kLabels + length + 6, y + 13, fixed(result->timing->step_ms, 2));
    if (const auto limit = result->timing->limit_ms) {
      const double x = kLabels + *limit * scale;
      add_line(svg, x, y - 2, x, y + kBar + 2, {{"stroke", "#d55e00"}, {"stroke-width", "3"}});
    }
    y += kBar + kGap;
  }
  add_text_at(svg, kLabels, y + 14, "vertical line: what the hardware could do (roofline)");
  return markup::to_svg(document);
}

std::string scaling(const std::vector<Result>& results) {
  size_t most = 1;
  for (const auto& result : results) most = std::max(most, result.what.ranks);
  const Axes axes{.most = static_cast<double>(most)};
  pugi::xml_document document;
  auto svg = begin_plot(document, kLeft + kWidth + kLegend, kTop + kHeight + 50,
                        "Speed-up over ranks; dashed: ideal; bars: the model; crosses: two nodes");
  add_grid(svg, axes);
  size_t series = 0;
  for (const auto& result : results) {
    if (result.what.ranks != 1 || !result.timing) continue;
    const char* colour = kColours[series % std::size(kColours)];
    if (!add_series(svg, axes, results, result, colour)) continue;
    const double legend = kTop + 10 + 18 * static_cast<double>(series++);
    add_dot(svg, kLeft + kWidth + 20, legend - 4, colour, result.what.ours);
    add_text_at(svg, kLeft + kWidth + 30, legend, full_label(result));
  }
  return markup::to_svg(document);
}

}  // namespace checker::bench
