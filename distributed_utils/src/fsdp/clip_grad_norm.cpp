#include "distributed_utils/clip_grad_norm.hpp"

#include <ATen/ATen.h>

#include <unordered_set>

#include "distributed_utils/collectives.hpp"
#include "distributed_utils/error.hpp"

namespace distributed_utils {

at::Tensor clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm,
                           const Group& group) {
  if (parameters.empty()) {
    throw Error("clip_grad_norm_: no parameters were given. Fix: pass the model's parameters.");
  }
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const auto& parameter : parameters) {
    const at::Tensor& gradient = parameter.grad();
    if (!gradient.defined() || !seen.insert(gradient.unsafeGetTensorImpl()).second) continue;
    gradients.push_back(gradient);
  }
  const auto& like = parameters[0];
  const auto type = like.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  at::Tensor square = at::zeros({}, like.options().dtype(type).requires_grad(false));
  if (!gradients.empty()) {
    // An empty shard has no norm in some versions of this kernel, and adds nothing anyhow.
    std::erase_if(gradients, [](const at::Tensor& gradient) { return gradient.numel() == 0; });
  }
  if (!gradients.empty()) {
    square = at::stack(at::_foreach_norm(gradients, 2, type)).square().sum();
  }
  if (get_world_size(group) > 1) all_reduce(square, ReduceOp::SUM, group);
  at::Tensor norm = square.sqrt();
  const at::Tensor factor = at::clamp(max_norm / (norm + 1e-6), std::nullopt, 1.0);
  if (!gradients.empty()) at::_foreach_mul_(gradients, factor);
  return norm;
}

}  // namespace distributed_utils
