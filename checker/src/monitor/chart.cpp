#include "monitor/chart.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "monitor/words.hpp"
#include "support/text.hpp"

namespace checker::monitor {

namespace {

// Of a chart, however many curves it has: 64 ranks and 100,000 steps must fit into a page.
constexpr size_t kMostPoints = 6000;
constexpr size_t kColours = 8;
constexpr size_t kLegend = 16;  // more names say nothing
constexpr size_t kFew = 60;     // points that are shown one by one as well
constexpr double kPeak = 4;     // times the others' height

struct Range {
  double low = 0, high = 1;

  double share(double value) const { return (value - low) / (high - low); }
};

std::vector<Series> finite_ones(const Chart& chart) {
  std::vector<Series> all;
  for (const auto& series : chart.series) {
    Series kept{series.name, {}};
    for (const auto& point : series.points) {
      if (std::isfinite(point.x) && std::isfinite(point.y)) kept.points.push_back(point);
    }
    if (!kept.points.empty()) all.push_back(std::move(kept));
  }
  return all;
}

template <class Get>
Range range_of(const std::vector<Series>& all, Get get) {
  Range range{get(all.front().points.front()), get(all.front().points.front())};
  for (const auto& series : all) {
    for (const auto& point : series.points) {
      range.low = std::min(range.low, get(point));
      range.high = std::max(range.high, get(point));
    }
  }
  return range;
}

// Above which there are only peaks, if there are some; else that of the highest point.
double height_without_peaks(const std::vector<Series>& all, double highest) {
  std::vector<double> heights;
  for (const auto& series : all) {
    for (const auto& point : series.points) heights.push_back(point.y);
  }
  const size_t few = std::max(all.size(), heights.size() / 100);
  if (heights.size() < kFew || few >= heights.size()) return highest;
  const auto next = heights.begin() + static_cast<std::ptrdiff_t>(few);
  std::ranges::nth_element(heights, next, std::greater<>());
  return highest > kPeak * *next ? *next : highest;
}

// Of the y axis, for points in this range.
Range with_room(Range range, bool from_zero) {
  if (from_zero) range.low = std::min(range.low, 0.0);
  const double room = range.high - range.low;
  if (room <= 0) {
    const double least = range.high == 0 ? 1 : std::abs(range.high) * 0.1;
    return {from_zero ? range.low : range.low - least, range.high + least};
  }
  return {from_zero ? range.low : range.low - 0.05 * room, range.high + 0.05 * room};
}

std::string with_peak(const std::string& note, const std::string& highest) {
  return note + (note.empty() ? "" : "; ") + "at most " + highest + ", outside the plot";
}

// "500.0,75.0"
std::string placed(const Point& point, Range x, Range y, double height) {
  return fixed(kPlotWidth * x.share(point.x), 1) + "," + fixed(height * (1 - y.share(point.y)), 1);
}

std::string curve(const std::vector<Point>& points, Range x, Range y, double height) {
  std::string text;
  for (const auto& point : points) {
    if (!text.empty()) text += ' ';
    text += placed(point, x, y, height);
  }
  return text;
}

// Lines without length, which end round: zooming in one direction leaves them so.
std::string dots(const std::vector<Point>& points, Range x, Range y, double height) {
  std::string path;
  for (const auto& point : points) path += "M" + placed(point, x, y, height) + "h0";
  return path;
}

// Bytes are counted in powers of 1024: round numbers of the unit in which they are shown.
std::vector<double> levels_of(Range y, const std::string& unit) {
  double scale = 1;
  while (unit.starts_with('B') && y.high / scale >= 1024) scale *= 1024;
  auto levels = ticks_between(y.low / scale, y.high / scale, 4);
  for (auto& level : levels) level *= scale;
  return levels;
}

void add_curves(const Figure& figure, const std::vector<Series>& all, Range x, Range y,
                double height) {
  const size_t buckets = std::max<size_t>(8, kMostPoints / 2 / all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& [name, points] = all[i];
    markup::add(figure.plot, "polyline",
                {colour(i, all.size()),
                 {"data-name", name},
                 {"points", curve(sampled_down(points, buckets), x, y, height)}});
    if (points.size() > kFew) continue;
    markup::add(figure.plot, "path", {colour(i, all.size()), {"d", dots(points, x, y, height)}});
  }
}

void add_levels(const Figure& figure, Range y, const std::string& unit, double height) {
  for (const double level : levels_of(y, unit)) {
    const auto top = fixed(kPlotTop + height * (1 - y.share(level)), 1);
    markup::add(figure.levels, "line",
                {{"x1", fixed(kPlotLeft, 0)},
                 {"x2", fixed(kPlotLeft + kPlotWidth, 0)},
                 {"y1", top},
                 {"y2", top}});
    markup::add(figure.levels, "text", {{"x", fixed(kPlotLeft - 6, 0)}, {"y", top}},
                shown(level, unit));
  }
}

void add_legend(const Figure& figure, const std::vector<Series>& all) {
  if (all.size() < 2) return;
  for (size_t i = 0; i < std::min(all.size(), kLegend); ++i) {
    add_to_legend(figure, colour(i, all.size(), "background"), all[i].name);
  }
  if (all.size() <= kLegend) return;
  markup::add(figure.element.child("div"), "span", "… " + std::to_string(all.size()) + " in all");
}

void add_ticks(pugi::xml_node outer, const Frame& frame) {
  auto ticks = markup::add(outer, "g", {{"class", "ticks"}});
  for (const double tick : ticks_between(frame.from, frame.to, 8)) {
    const double x = kPlotLeft + kPlotWidth * (tick - frame.from) / (frame.to - frame.from);
    markup::add(ticks, "text", {{"x", fixed(x, 1)}, {"y", fixed(frame.height + kPlotTop + 16, 0)}},
                shown(tick, frame.x_unit));
  }
}

}  // namespace

std::vector<Point> sampled_down(std::span<const Point> points, size_t buckets) {
  if (points.size() <= 2 * buckets || buckets == 0) return {points.begin(), points.end()};
  const double from = points.front().x;
  const double width = (points.back().x - from) / static_cast<double>(buckets);
  std::vector<Point> kept;
  for (size_t begin = 0; begin < points.size();) {
    const auto bucket = [&](const Point& point) {
      return width > 0 ? std::min(buckets - 1, static_cast<size_t>((point.x - from) / width)) : 0;
    };
    const size_t here = bucket(points[begin]);
    size_t low = begin, high = begin, end = begin;
    for (; end < points.size() && bucket(points[end]) == here; ++end) {
      if (points[end].y < points[low].y) low = end;
      if (points[end].y > points[high].y) high = end;
    }
    kept.push_back(points[std::min(low, high)]);
    if (low != high) kept.push_back(points[std::max(low, high)]);
    begin = end;
  }
  return kept;
}

std::vector<double> ticks_between(double low, double high, int count) {
  if (!(high > low)) return {low};
  const double rough = (high - low) / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double candidate : {1.0, 2.0, 5.0}) {
    if (candidate * power >= rough) {
      step = candidate * power;
      break;
    }
  }
  std::vector<double> ticks;
  for (auto n = static_cast<int64_t>(std::ceil(low / step)); n * step <= high + 1e-9 * step; ++n) {
    ticks.push_back(static_cast<double>(n) * step);
  }
  return ticks;
}

std::string shown(double value, const std::string& unit) {
  if (unit == "s") return value == 0 ? "0" : shown_seconds(value);
  if (unit == "B") return shown_bytes(value);
  if (unit == "B/s") return shown_bytes(value) + "/s";
  if (unit == "%") return fixed(value, 0) + " %";
  if (unit == "step") return fixed(value, 0);
  const auto number = std::abs(value) >= 1e4 ? shown_count(value) : compact(value);
  return unit.empty() ? number : number + " " + unit;
}

markup::Attribute colour(size_t n, size_t count, const char* property) {
  if (count <= kColours) return {"class", "s" + std::to_string(n)};
  const auto hue = 360 * n / count;
  return {"style", std::string(property) + ":hsl(" + std::to_string(hue) + " 60% 50%)"};
}

Figure add_figure(pugi::xml_node page, const Frame& frame) {
  const auto left = fixed(kPlotLeft, 0), top = fixed(kPlotTop, 0), width = fixed(kPlotWidth, 0);
  const auto height = fixed(frame.height, 0);
  Figure figure;
  figure.element = markup::add(page, "figure",
                               {{"class", "chart"},
                                {"data-from", compact(frame.from)},
                                {"data-to", compact(frame.to)},
                                {"data-unit", frame.x_unit},
                                {"data-height", height}});
  auto caption = markup::add(figure.element, "figcaption", frame.title);
  if (!frame.note.empty()) {
    markup::add_text(caption, " ");
    markup::add(caption, "small", frame.note);
  }
  auto outer = markup::add(figure.element, "svg",
                           {{"class", "outer"},
                            {"viewBox", "0 0 1096 " + fixed(frame.height + 30, 0)},
                            {"tabindex", "0"},
                            {"role", "img"},
                            {"aria-label", frame.title}});
  markup::add(outer, "rect",
              {{"class", "area"}, {"x", left}, {"y", top}, {"width", width}, {"height", height}});
  figure.plot = markup::add(outer, "svg",
                            {{"class", "plot"},
                             {"x", left},
                             {"y", top},
                             {"width", width},
                             {"height", height},
                             {"viewBox", "0 0 " + width + " " + height},
                             {"preserveAspectRatio", "none"}});
  figure.levels = markup::add(outer, "g", {{"class", "levels"}});
  add_ticks(outer, frame);
  return figure;
}

void add_to_legend(const Figure& figure, const markup::Attribute& colour, const std::string& text) {
  auto element = figure.element;
  auto legend = element.child("div");
  if (!legend) legend = markup::add(element, "div", {{"class", "legend"}});
  auto entry = markup::add(legend, "span");
  markup::add(entry, "i", {colour});
  markup::add_text(entry, text);
}

void draw(pugi::xml_node page, const Chart& chart) {
  const auto all = finite_ones(chart);
  const bool is_curve =
      std::ranges::any_of(all, [](const Series& series) { return series.points.size() > 1; });
  if (!is_curve) return;
  auto x = range_of(all, [](const Point& point) { return point.x; });
  if (x.high <= x.low) x.high = x.low + 1;
  auto heights = range_of(all, [](const Point& point) { return point.y; });
  const double highest = heights.high;
  if (chart.cuts_peaks) heights.high = height_without_peaks(all, highest);
  const auto y = with_room(heights, chart.from_zero);
  const Frame frame{
      .title = chart.title,
      .note = highest > y.high ? with_peak(chart.note, shown(highest, chart.y_unit)) : chart.note,
      .x_unit = chart.x_unit,
      .from = x.low,
      .to = x.high};
  const auto figure = add_figure(page, frame);
  markup::set(figure.element, {"data-low", compact(y.low)});
  markup::set(figure.element, {"data-high", compact(y.high)});
  markup::set(figure.element, {"data-y", chart.y_unit});
  add_curves(figure, all, x, y, frame.height);
  add_levels(figure, y, chart.y_unit, frame.height);
  add_legend(figure, all);
}

}  // namespace checker::monitor
