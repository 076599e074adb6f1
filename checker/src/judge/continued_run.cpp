#include "judge/continued_run.hpp"

#include "evidence/folders.hpp"

namespace checker {

namespace fs = std::filesystem;

Plan plan_of_continued(const Plan& plan) {
  auto shorter = plan;
  shorter.epochs = 1;
  shorter.max_steps = 4;  // the optimizer's state shows from the first of them on
  return shorter;
}

std::vector<std::optional<RecordedRun>> run_continued(const Experiment& experiment,
                                                      const Plan& plan,
                                                      const std::vector<RecordedRun>& runs) {
  const auto shorter = plan_of_continued(plan);
  std::vector<std::optional<RecordedRun>> continued(runs.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto& run = runs[i].run;
    if (i >= plan.continued.size() || plan.continued[i].empty() || !run.result.success()) continue;
    const auto model = best_model_in(run.ranks.at(0).folder);
    if (!fs::is_directory(model)) continue;
    auto own = experiment;
    own.folder = continued_of(runs[i].folder);
    own.worlds = {plan.continued[i]};
    own.reads.push_back(model);
    own.options.insert(own.options.end(),
                       {"--from", model.string(), "--epochs", std::to_string(shorter.epochs),
                        "--max-steps", std::to_string(shorter.max_steps)});
    continued[i] = std::move(run_experiment(own).front());
  }
  return continued;
}

}  // namespace checker
