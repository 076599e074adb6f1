#include "fsdp/shard_tree.hpp"

#include <memory>
#include <unordered_map>

namespace distributed_utils::detail {
namespace {

class ShardTree {
 public:
  explicit ShardTree(const std::function<at::Tensor(const at::Tensor&)>& shard_of)
      : shard_of_(shard_of) {}

  void grow(torch::nn::Module& tree, const torch::nn::Module& module) {
    for (const auto& item : module.named_parameters(/*recurse=*/false)) {
      tree.register_parameter(item.key(), shard_of_(item.value()), item.value().requires_grad());
    }
    for (const auto& item : module.named_buffers(/*recurse=*/false)) {
      tree.register_buffer(item.key(), item.value());
    }
    for (const auto& child : module.named_children()) {
      auto& part = parts_[child.value().get()];
      const bool is_new = part == nullptr;
      if (is_new) part = std::make_shared<torch::nn::Module>(child.value()->name());
      const auto own = part;  // growing it moves the others
      tree.register_module(child.key(), own);
      if (is_new) grow(*own, *child.value());
    }
  }

 private:
  const std::function<at::Tensor(const at::Tensor&)>& shard_of_;
  std::unordered_map<const torch::nn::Module*, std::shared_ptr<torch::nn::Module>> parts_;
};

}  // namespace

void grow_shard_tree(torch::nn::Module& tree, const torch::nn::Module& module,
                     const std::function<at::Tensor(const at::Tensor&)>& shard_of) {
  ShardTree(shard_of).grow(tree, module);
}

}  // namespace distributed_utils::detail
