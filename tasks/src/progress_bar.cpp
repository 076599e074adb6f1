#include "progress_bar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tasks {
namespace {

// 950, 18.3k, 1.20M
std::string rounded(double rate) {
  if (rate < 1e3) return fmt::format("{:.0f}", rate);
  if (rate < 1e6) return fmt::format("{:.1f}k", rate / 1e3);
  return fmt::format("{:.2f}M", rate / 1e6);
}

// 0:42, 12:05, 1:02:05
std::string clock(double seconds) {
  const auto whole = static_cast<int64_t>(std::lround(seconds));
  const auto hours = whole / 3600;
  const auto minutes = whole / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60)
                   : fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string words(const BarState& state) {
  const auto total = fmt::format("{}", state.total_steps);
  std::string text = fmt::format("{:>{}}/{}", state.step, total.size(), total);
  if (state.loss) text += fmt::format("  loss {:.3f}", *state.loss);
  if (state.targets_per_second) {
    text += fmt::format("  {} tokens/s", rounded(*state.targets_per_second));
  }
  if (state.seconds_left) text += fmt::format("  {} left", clock(*state.seconds_left));
  return text;
}

// "[====>    ] " in `columns` columns.
std::string bar(const BarState& state, int columns, bool colors) {
  const int inside = columns - 3;
  const double done =
      state.total_steps > 0 ? std::min(1.0, double(state.step) / double(state.total_steps)) : 0.0;
  const int filled = static_cast<int>(done * inside);
  std::string line(static_cast<size_t>(filled), '=');
  if (filled < inside) line += '>';
  const std::string rest(static_cast<size_t>(inside) - line.size(), ' ');
  return fmt::format("[{}{}{}{}] ", colors ? "\x1b[32m" : "", line, colors ? "\x1b[0m" : "", rest);
}

}  // namespace

std::string format_bar(const BarState& state, int width, bool colors) {
  constexpr int least = 8;
  constexpr int most = 33;
  const std::string text = words(state);
  const int room = width - static_cast<int>(text.size());
  if (room < least) return text.substr(0, static_cast<size_t>(std::max(width, 0)));
  return bar(state, std::min(room, most), colors) + text;
}

}  // namespace tasks
