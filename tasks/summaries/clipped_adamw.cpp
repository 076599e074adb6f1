#include "clipped_adamw.hpp"

#include <ATen/Functions.h>

namespace tasks::summaries {

void clip_gradients(const std::vector<torch::Tensor>& gradients, double longest) {
  if (gradients.empty()) return;
  const torch::NoGradGuard no_grad;
  const auto norm = at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients)));
  const auto factor = (longest / (norm + 1e-6)).clamp_max(1);  // 1e-6 as in Python
  at::_foreach_mul_(gradients, factor);
}

void ClippedAdamW::clip() {
  if (longest_ == 0) return;
  std::vector<torch::Tensor> gradients;
  for (const auto& group : param_groups()) {
    for (const auto& parameter : group.params()) {
      if (parameter.grad().defined()) gradients.push_back(parameter.grad());
    }
  }
  clip_gradients(gradients, longest_);
}

torch::Tensor ClippedAdamW::step(LossClosure closure) {
  if (!closure) {
    clip();
    return FusedAdamW::step();
  }
  return FusedAdamW::step([&] {
    auto loss = closure();
    clip();
    return loss;
  });
}

}  // namespace tasks::summaries
