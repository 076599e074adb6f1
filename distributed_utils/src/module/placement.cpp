#include "distributed_utils/placement.hpp"

namespace distributed_utils {
namespace {

Placement whole(std::string name, const at::Tensor& tensor) {
  return {.name = std::move(name),
          .tensor = tensor,
          .global_shape = tensor.sizes().vec(),
          .offset = std::vector<int64_t>(tensor.dim(), 0)};
}

/// Appends the pieces of a module whose name within the whole model is `prefix`.
void collect(const torch::nn::Module& module, const std::string& prefix,
             std::vector<Placement>& into) {
  if (const auto* placed = dynamic_cast<const Placed*>(&module)) {
    for (auto& piece : placed->placements()) {
      piece.name.insert(0, prefix);
      into.push_back(std::move(piece));
    }
    return;
  }
  for (const auto& item : module.named_parameters(/*recurse=*/false)) {
    into.push_back(whole(prefix + item.key(), item.value()));
  }
  for (const auto& item : module.named_buffers(/*recurse=*/false)) {
    into.push_back(whole(prefix + item.key(), item.value()));
  }
  for (const auto& child : module.named_children()) {
    collect(*child.value(), prefix + child.key() + ".", into);
  }
}

}  // namespace

std::vector<Placement> placements(const torch::nn::Module& module) {
  std::vector<Placement> result;
  collect(module, "", result);
  return result;
}

}  // namespace distributed_utils
