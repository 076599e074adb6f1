#include "distributed_utils/buffers.hpp"

#include <ATen/ATen.h>

#include <map>
#include <unordered_set>
#include <vector>

#include "distributed_utils/collectives.hpp"

namespace distributed_utils {
namespace {

/// Each buffer once, though modules may share one, by type. Complex numbers count as pairs of real
/// ones, since backends know no others.
std::map<at::ScalarType, std::vector<at::Tensor>> buffers_by_type(const torch::nn::Module& module) {
  std::map<at::ScalarType, std::vector<at::Tensor>> result;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const auto& buffer : module.buffers()) {
    if (!buffer.defined() || !seen.insert(buffer.unsafeGetTensorImpl()).second) continue;
    const at::Tensor values =
        buffer.is_complex() ? at::view_as_real(buffer.detach()) : buffer.detach();
    result[values.scalar_type()].push_back(values);
  }
  return result;
}

at::Tensor flattened(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> flat;
  flat.reserve(tensors.size());
  for (const auto& tensor : tensors) flat.push_back(tensor.reshape({-1}));
  return at::cat(flat);
}

void distribute(const at::Tensor& flat, const std::vector<at::Tensor>& tensors) {
  int64_t begin = 0;
  for (const auto& tensor : tensors) {
    tensor.copy_(flat.narrow(0, begin, tensor.numel()).view(tensor.sizes()));
    begin += tensor.numel();
  }
}

}  // namespace

void synchronize_buffers(const torch::nn::Module& module, Buffers how, const Group& group) {
  if (get_world_size(group) == 1) return;
  const at::NoGradGuard no_grad;
  for (const auto& [type, tensors] : buffers_by_type(module)) {
    at::Tensor flat = flattened(tensors);
    if (how == Buffers::mean && flat.is_floating_point()) {
      if (flat.element_size() < 4) flat = flat.to(at::kFloat);
      all_reduce(flat, ReduceOp::AVG, group);
    } else {
      broadcast(flat, 0, group);
    }
    distribute(flat, tensors);
  }
}

}  // namespace distributed_utils
