// The final model is one file as ever, under its name, for whoever does not load parts.
#include "judge/rules/model_files.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

void whole_file(const RunContext& context, Symptoms& symptoms);

void whole_file(const RunContext& context, Symptoms& symptoms) {
  if (!context.ended_well()) return;  // its files may have been still to come
  if (context.truth.ranks.empty() || context.truth.validation.empty()) return;
  if (auto broken = broken_safetensors(context)) {
    symptoms.push_back(std::move(*broken));
    return;
  }
  if (holds(context.truth.ranks[0].files, epoch_of(context, "final"))) {
    if (auto misnamed = misnamed_models(context)) symptoms.push_back(std::move(*misnamed));
    return;
  }
  symptoms.push_back({.id = "no_whole_file",
                      .values = context.values(),
                      .evidence = {{"no_file", {{"epoch", context.truth.validation.size()}}}}});
}

}  // namespace checker::rules
