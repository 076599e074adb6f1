#pragma once
/// Judging a trainer: it is run at several worlds, replayed, and looked at by every rule.
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "judge/run_context.hpp"
#include "support/project.hpp"

namespace checker {

struct TrainerCheckOptions {
  std::filesystem::path program;
  std::filesystem::path source;    ///< its text, for the lines of collectives
  std::string shown;               ///< how to name that
  const Plan& plan;                ///< what it is asked to do
  std::filesystem::path folder;    ///< an empty one, for what the runs leave behind
  std::string device;              ///< "cpu", "cuda"
  std::set<int> untouched;         ///< TODOs at whose places the code is the given one
  const Box* box = nullptr;        ///< where all is shut in that comes from the program, if it is
  ForkServers* servers = nullptr;  ///< of programs that can serve, if there are any
  std::function<void(std::string_view)> on_stage;
};

/// A TODO that could not be judged; 0: none of them could.
struct Unjudged {
  int todo = 0;
  std::string reason;
};

struct TrainerChecked {
  Findings findings;
  std::vector<Unjudged> unjudged;
  /// The run of some world did not end.
  bool cut_off = false;
  /// Of a gradient, a parameter or a loss, relative, from what the replay gives.
  double largest_deviation = 0;
  std::optional<Timeline> timeline;  ///< of the first run with a finding
};

/// Throws Error where the replay fails.
TrainerChecked check_trainer(const Project& project, const Course& course, const Step& step,
                             const TrainerCheckOptions& options);

}  // namespace checker
