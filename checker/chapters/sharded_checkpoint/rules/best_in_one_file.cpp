// The parts take the place of the one file that rank 0 gathered: as long as that is written as
// well, saving takes as long as ever. Only the final model stays one file.
#include <algorithm>

#include "evidence/folders.hpp"
#include "judge/rules/model_files.hpp"
#include "judge/rules/rules.hpp"
#include "support/files.hpp"

namespace checker::rules {

void best_in_one_file(const RunContext& context, Symptoms& symptoms);

namespace {

using instrumentation::FileAction;

// A file of the final model is not there until the training is over.
bool was_there_before_the_last_step(const Run& run, const std::filesystem::path& file) {
  const auto& rank = run.ranks[0];
  if (rank.steps.empty()) return false;
  const auto last = rank.log.events[rank.steps.back().event].nanoseconds;
  return std::ranges::any_of(rank.file_changes, [&](const FileChange& change) {
    if (change.action == FileAction::remove || change.nanoseconds > last) return false;
    return (change.action == FileAction::move ? change.new_path : change.path) == file;
  });
}

}  // namespace

void best_in_one_file(const RunContext& context, Symptoms& symptoms) {
  if (!context.expects("SHARDS") || context.world() == 1) return;
  if (!context.truth.saved || context.truth.saved->files.empty()) return;
  if (context.truth.ranks.empty() || context.truth.validation.empty()) return;
  const auto best = epoch_of(context, "best");
  const auto& folder = context.run().ranks[0].folder;
  for (const auto& file : context.truth.ranks[0].files) {
    const auto path = file.file.lexically_normal();
    if (file.holds != best || lies_in(path, best_model_in(folder)) ||
        !was_there_before_the_last_step(context.run(), path)) {
      continue;
    }
    symptoms.push_back(
        {.id = "best_in_one_file",
         .values = context.values(),
         .evidence = {
             {"holds", {{"file", path.lexically_relative(folder).string()}, {"epoch", best}}}}});
    return;
  }
}

}  // namespace checker::rules
