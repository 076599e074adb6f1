#pragma once
/// A second run of a program, by another number of ranks, which starts from the model that the
/// first one has saved.
#include <optional>
#include <vector>

#include "judge/experiment.hpp"
#include "plan/plan.hpp"

namespace checker {

/// What such a run does: a few steps of one epoch.
Plan plan_of_continued(const Plan& plan);

/// For each of these runs of the experiment the one that continues it, with --from; nothing where
/// the plan has none, the run did not end well, or left no folder of its best model.
std::vector<std::optional<RecordedRun>> run_continued(const Experiment& experiment,
                                                      const Plan& plan,
                                                      const std::vector<RecordedRun>& runs);

}  // namespace checker
