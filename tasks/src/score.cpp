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
  return count_on_device.defined() ? sum / count_on_device.to(sum.scalar_type()) : sum / count;
}

torch::Tensor Loss::targets() const {
  if (count_on_device.defined()) return count_on_device.clone();
  return at::full({}, static_cast<double>(count),
                  sum.options().dtype(torch::kDouble).requires_grad(false));
}

torch::Tensor Loss::totals() const {
  const auto value = sum.detach().to(torch::kDouble);
  const auto own = at::stack({value, targets()});
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
