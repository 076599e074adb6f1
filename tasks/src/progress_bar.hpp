#pragma once
/// How a progress bar looks, apart from when and where it is drawn.
#include <cstdint>
#include <optional>
#include <string>

namespace tasks {

struct BarState {
  int64_t step = 0;
  int64_t total_steps = 0;
  std::optional<double> loss = {};                ///< mean of the last step; none: not known
  std::optional<double> targets_per_second = {};  ///< of all ranks; none: not known yet
  std::optional<double> seconds_left = {};        ///< none: not known yet
};

/// One line of at most `width` columns, such as
/// "[=========>          ]  123/976  loss 4.912  18.3k tokens/s  0:42 left". Where there is not
/// room for all of it, the bar shrinks, then goes; then the line is cut.
std::string format_bar(const BarState& state, int width, bool colors);

}  // namespace tasks
