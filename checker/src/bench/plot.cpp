#include <algorithm>
#include <cmath>

#include "bench/bench.hpp"
#include "support/text.hpp"

namespace checker::bench {

namespace {

// In user units.
constexpr double kLeft = 56, kTop = 40, kWidth = 480, kHeight = 320, kLegend = 230;
constexpr double kBar = 18, kGap = 8, kLabels = 190;

// Told apart by people who do not see all colours alike (Okabe and Ito, 2008).
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9",
                                    "#e69f00", "#a08a00", "#7f7f7f", "#994f00", "#40b0a6"};

std::string escaped(const std::string& text) {
  return replaced(replaced(text, "&", "&amp;"), "<", "&lt;");
}

std::string text_at(double x, double y, const std::string& text, const char* anchor = "start") {
  return "  <text x=\"" + fixed(x, 1) + "\" y=\"" + fixed(y, 1) + "\" text-anchor=\"" + anchor +
         "\">" + escaped(text) + "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, const std::string& style) {
  return "  <line x1=\"" + fixed(x1, 1) + "\" y1=\"" + fixed(y1, 1) + "\" x2=\"" + fixed(x2, 1) +
         "\" y2=\"" + fixed(y2, 1) + "\" " + style + "/>\n";
}

std::string begin_svg(double width, double height, const std::string& title) {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + fixed(width, 0) + " " +
         fixed(height, 0) + "\" role=\"img\" aria-label=\"" + title +
         "\">\n"
         "  <style>\n"
         "    text { font-family: system-ui, sans-serif; font-size: 12px; fill: #24292f; }\n"
         "    .axis { stroke: #8c959f; }\n"
         "    @media (prefers-color-scheme: dark) { text { fill: #e6edf3; } }\n"
         "  </style>\n" +
         text_at(14, 22, title);
}

std::string full_label(const Result& result) {
  return (result.what.ours ? "C++ " : "Python ") + result.what.label;
}

/// Where speed-ups are drawn.
struct Axes {
  double most;  // ranks, and times as fast
  double x(double ranks) const { return kLeft + kWidth * ranks / most; }
  double y(double speed_up) const { return kTop + kHeight * (1 - speed_up / most); }
};

std::string grid(const Axes& axes) {
  std::string svg = line(axes.x(0), axes.y(0), axes.x(axes.most), axes.y(0), "class=\"axis\"") +
                    line(axes.x(0), axes.y(0), axes.x(0), axes.y(axes.most), "class=\"axis\"");
  for (int tick = 1; tick <= static_cast<int>(axes.most); ++tick) {
    svg += text_at(axes.x(tick), axes.y(0) + 18, std::to_string(tick), "middle");
    svg += text_at(axes.x(0) - 8, axes.y(tick) + 4, std::to_string(tick), "end");
  }
  svg += text_at(axes.x(axes.most / 2), axes.y(0) + 36, "ranks", "middle");
  return svg + line(axes.x(0), axes.y(0), axes.x(axes.most), axes.y(axes.most),
                    "stroke=\"#8c959f\" stroke-dasharray=\"6 4\"");
}

// From complete overlap of the all-reduce with the step to none.
std::string band(const Axes& axes, const Timing& one, const Result& many, const char* colour) {
  if (!many.timing->all_reduce_ms) return "";
  const auto ranks = static_cast<double>(many.what.ranks);
  const auto bounds = model(one, *many.timing);
  const auto speed_up = [&](double ms) { return ranks * one.step_ms / ms; };
  return line(axes.x(ranks), axes.y(speed_up(bounds.hidden_ms)), axes.x(ranks),
              axes.y(speed_up(bounds.exposed_ms)),
              "stroke-width=\"6\" stroke-opacity=\"0.35\" stroke=\"" + std::string(colour) + "\"");
}

std::string dot(double x, double y, const char* colour, bool ours) {
  const std::string paint = ours ? "fill=\"" + std::string(colour) + "\""
                                 : "fill=\"none\" stroke=\"" + std::string(colour) + "\"";
  return "  <circle cx=\"" + fixed(x, 1) + "\" cy=\"" + fixed(y, 1) + "\" r=\"4\" " + paint +
         "/>\n";
}

// For ranks on two nodes: they are on no line from one rank to many on one.
std::string cross(double x, double y, const char* colour) {
  const std::string paint = "stroke-width=\"2\" stroke=\"" + std::string(colour) + "\"";
  return line(x - 4, y - 4, x + 4, y + 4, paint) + line(x - 4, y + 4, x + 4, y - 4, paint);
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
  std::string svg = begin_svg(kLabels + kWidth + 80, height, "Milliseconds a step on one rank");
  double y = kTop;
  for (const auto* result : shown) {
    const double scale = kWidth / longest;
    const double length = result->timing->step_ms * scale;
    svg += text_at(kLabels - 8, y + 13, full_label(*result), "end");
    svg += "  <rect x=\"" + fixed(kLabels, 1) + "\" y=\"" + fixed(y, 1) + "\" width=\"" +
           fixed(length, 1) + "\" height=\"" + fixed(kBar, 1) + "\" fill=\"" +
           (result->what.ours ? kColours[0] : kColours[5]) + "\"/>\n";
    svg += text_at(kLabels + length + 6, y + 13, fixed(result->timing->step_ms, 2));
    if (const auto limit = result->timing->limit_ms) {
      const double x = kLabels + *limit * scale;
      svg += line(x, y - 2, x, y + kBar + 2, "stroke=\"#d55e00\" stroke-width=\"3\"");
    }
    y += kBar + kGap;
  }
  return svg + text_at(kLabels, y + 14, "vertical line: what the hardware could do (roofline)") +
         "</svg>\n";
}

std::string scaling(const std::vector<Result>& results) {
  size_t most = 1;
  for (const auto& result : results) most = std::max(most, result.what.ranks);
  const Axes axes{.most = static_cast<double>(most)};
  std::string svg =
      begin_svg(kLeft + kWidth + kLegend, kTop + kHeight + 50,
                "Speed-up over ranks; dashed: ideal; bars: the model; crosses: two nodes") +
      grid(axes);
  size_t series = 0;
  for (const auto& result : results) {
    if (result.what.ranks != 1 || !result.timing) continue;
    const char* colour = kColours[series % std::size(kColours)];
    double x = axes.x(1), y = axes.y(1);
    svg += dot(x, y, colour, result.what.ours);
    bool any = false;
    for (const auto& other : results) {
      if (other.what.ranks == 1 || !other.timing || alone(results, other) != &result) continue;
      const double speed_up = other.timing->tokens_per_s / result.timing->tokens_per_s;
      const double to_x = axes.x(static_cast<double>(other.what.ranks)), to_y = axes.y(speed_up);
      if (other.what.nodes > 1) {
        svg += cross(to_x, to_y, colour);
        continue;
      }
      svg += band(axes, *result.timing, other, colour) +
             line(x, y, to_x, to_y, "stroke=\"" + std::string(colour) + "\"") +
             dot(to_x, to_y, colour, result.what.ours);
      x = to_x, y = to_y, any = true;
    }
    if (!any) continue;
    const double legend = kTop + 10 + 18 * static_cast<double>(series++);
    svg += dot(kLeft + kWidth + 20, legend - 4, colour, result.what.ours) +
           text_at(kLeft + kWidth + 30, legend, full_label(result));
  }
  return svg + "</svg>\n";
}

}  // namespace checker::bench
