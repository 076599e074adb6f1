#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/canvas.hpp"
#include "bench/study.hpp"
#include "support/text.hpp"

namespace checker::bench {

namespace {

using Results = std::vector<const TrialResult*>;

// Every doubling of the batch is as wide.
struct BatchAxes {
  double doublings = 1, least = 0, most = 1;
  double x(size_t times) const {
    return kLeft + 20 + (kWidth - 40) * std::log2(static_cast<double>(times)) / doublings;
  }
  double y(double loss) const { return kTop + kHeight * (most - loss) / (most - least); }
};

BatchAxes batch_axes_of(const Results& shown) {
  BatchAxes axes{.least = std::numeric_limits<double>::infinity(), .most = -axes.least};
  for (const auto* result : shown) {
    axes.least = std::min(axes.least, result->least_loss());
    axes.most = std::max(axes.most, result->most_loss());
    axes.doublings = std::max(axes.doublings, std::log2(static_cast<double>(result->what.times)));
  }
  const double margin = std::max(0.1 * (axes.most - axes.least), 1e-6);
  axes.least -= margin, axes.most += margin;
  return axes;
}

void add_axes(pugi::xml_node svg, const BatchAxes& axes, const Results& shown) {
  const double right = kLeft + kWidth, bottom = kTop + kHeight;
  add_line(svg, kLeft, bottom, right, bottom, {{"class", "axis"}});
  add_line(svg, kLeft, bottom, kLeft, kTop, {{"class", "axis"}});
  constexpr int kTicks = 5;
  for (int tick = 0; tick <= kTicks; ++tick) {
    const double loss = axes.least + (axes.most - axes.least) * tick / kTicks;
    add_text_at(svg, kLeft - 6, axes.y(loss) + 4, fixed(loss, 3), "end");
  }
  for (const auto* result : shown) {
    if (result->what.scaled) {  // each batch once
      add_text_at(svg, axes.x(result->what.times), bottom + 18,
                  std::to_string(result->what.samples_a_step()), "middle");
    }
  }
  add_text_at(svg, kLeft + kWidth / 2, bottom + 36, "samples a step", "middle");
}

// The smallest batch has one rate, and begins both lines.
void add_series(pugi::xml_node svg, const BatchAxes& axes, const Results& shown, bool scaled,
                const char* colour) {
  const TrialResult* before = nullptr;
  for (const auto* result : shown) {
    if (result->what.times > 1 && result->what.scaled != scaled) continue;
    const double x = axes.x(result->what.times), y = axes.y(result->mean_loss());
    add_line(svg, x, axes.y(result->least_loss()), x, axes.y(result->most_loss()),
             {{"stroke-width", "6"}, {"stroke-opacity", "0.35"}, {"stroke", colour}});
    if (before != nullptr) {
      add_line(svg, axes.x(before->what.times), axes.y(before->mean_loss()), x, y,
               {{"stroke", colour}});
    }
    add_dot(svg, x, y, colour, scaled);
    before = result;
  }
}

void add_legend(pugi::xml_node svg, int line, const std::string& words, const char* colour,
                bool filled) {
  const double y = kTop + 10 + 18 * line;
  add_dot(svg, kLeft + kWidth + 20, y - 4, colour, filled);
  add_text_at(svg, kLeft + kWidth + 30, y, words);
}

}  // namespace

std::string study_plot(const std::vector<TrialResult>& results) {
  Results shown;
  for (const auto& result : results) {
    if (result.failure.empty()) shown.push_back(&result);
  }
  pugi::xml_document document;
  auto svg =
      begin_plot(document, kLeft + kWidth + kLegend, kTop + kHeight + 50,
                 "Validation loss after the same number of samples; bars: lowest to highest");
  if (!shown.empty()) {
    const auto axes = batch_axes_of(shown);
    add_axes(svg, axes, shown);
    add_series(svg, axes, shown, /*scaled=*/true, kColours[0]);
    add_series(svg, axes, shown, /*scaled=*/false, kColours[1]);
  }
  add_legend(svg, 0, "learning rate times sqrt(batch)", kColours[0], true);
  add_legend(svg, 1, "learning rate unchanged", kColours[1], false);
  return markup::to_svg(document);
}

}  // namespace checker::bench
