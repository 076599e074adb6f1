#pragma once
/// Curves over time or steps, drawn as SVG. The page's script adds zooming and figures under the
/// pointer; without it they are whole as well.
#include <span>
#include <string>
#include <vector>

#include "support/markup.hpp"

namespace checker::monitor {

struct Point {
  double x = 0, y = 0;
};

struct Series {
  std::string name;
  std::vector<Point> points;  ///< in order of x; what is not finite is left out
};

struct Chart {
  std::string title;
  std::string note = {};     ///< a line below the title
  std::string x_unit = "s";  ///< "s" or "step"
  std::string y_unit = {};   ///< "s", "B", "B/s", "%", or what stands behind plain numbers
  std::vector<Series> series;
  bool from_zero = true;  ///< the y axis begins at 0
  /// Where a few points (a hundredth, or one of each series) are several times as high as all the
  /// others, a first step for example, the y axis ends above the others; the note says how high
  /// they are, and so does the pointer.
  bool cuts_peaks = false;
};

/// Adds a <figure>; nothing for a chart without two points to join.
void draw(pugi::xml_node page, const Chart& chart);

/// At most 2 * buckets points: of each of so many equal parts of the range of x, the lowest and the
/// highest, in their order. So no spike is lost.
std::vector<Point> sampled_down(std::span<const Point> points, size_t buckets);

/// Numbers with one, two or five before zeros that divide a range into about `count` parts.
std::vector<double> ticks_between(double low, double high, int count);

/// A value with its unit, for people.
std::string shown(double value, const std::string& unit);

/// The class of the n-th of `count` colours, or, of many, its style.
markup::Attribute colour(size_t n, size_t count, const char* property = "stroke");

/// What every figure has: a title, an area, a plot in it that is drawn from (0, 0) to (kPlotWidth,
/// height) and zoomed in x, and ticks below.
constexpr double kPlotLeft = 84, kPlotTop = 8, kPlotWidth = 1000;
struct Frame {
  std::string title, note, x_unit;
  double from = 0, to = 1;  ///< of x
  double height = 150;
};

/// The parts of a figure that are still to be filled.
struct Figure {
  pugi::xml_node element;  ///< the <figure>
  pugi::xml_node plot;     ///< for curves and marks
  pugi::xml_node levels;   ///< for what names heights, left of the plot
};
Figure add_figure(pugi::xml_node page, const Frame& frame);

/// Adds an entry to the figure's legend, which comes with its first entry.
void add_to_legend(const Figure& figure, const markup::Attribute& colour, const std::string& text);

}  // namespace checker::monitor
