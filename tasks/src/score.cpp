#include "tasks/score.hpp"

#include <ATen/Functions.h>

#include "instrumentation/recording.hpp"
#include "phases.hpp"
#include "tasks/options.hpp"

namespace tasks {

torch::Tensor Loss::mean() const {
  // backward() starts from here.
  if (instrumentation::recording::enabled()) instrumentation::recording::note_place();
  if (torch::GradMode::is_enabled()) phases::backward_begins();
  return sum / count;
}

torch::Tensor Loss::totals() const {
  const auto value = sum.detach().to(torch::kDouble);
  const auto own = at::stack({value, at::full({}, count, value.options())});
  return metrics.defined() ? at::cat({own, metrics.flatten()}) : own;
}

double Score::metric(std::string_view name) const {
  std::string known;
  for (const auto& [own, value] : metrics_) {
    if (own == name) return value;
    known += (known.empty() ? "" : ", ") + own;
  }
  throw Error("no metric '" + std::string(name) +
              "'; the task has: " + (known.empty() ? "none" : known));
}

}  // namespace tasks
