// The final model is one file as ever, for whoever does not load parts.
#include <algorithm>

#include "judge/rules/rules.hpp"

namespace checker::rules {

void whole_file(const RunContext& context, Symptoms& symptoms);

void whole_file(const RunContext& context, Symptoms& symptoms) {
  if (!context.ended_well()) return;  // it may have had that to come
  if (context.truth.ranks.empty() || context.truth.validation.empty()) return;
  const auto last = "epoch " + std::to_string(context.truth.validation.size());
  const auto& files = context.truth.ranks[0].files;
  if (std::ranges::any_of(files, [&](const FileContent& file) { return file.holds == last; })) {
    return;
  }
  symptoms.push_back({.id = "no_whole_file",
                      .values = context.values(),
                      .evidence = {{"no_file", {{"epoch", context.truth.validation.size()}}}}});
}

}  // namespace checker::rules
