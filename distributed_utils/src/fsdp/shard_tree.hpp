#pragma once
/// The names of a model, with other tensors.
#include <torch/nn/module.h>

#include <functional>

namespace distributed_utils::detail {

/// Registers with `tree` what `module` has registered: parameters replaced as `shard_of` says,
/// buffers as they are, and for each submodule an empty one with its own. What is shared in the
/// module is shared in the tree.
void grow_shard_tree(torch::nn::Module& tree, const torch::nn::Module& module,
                     const std::function<at::Tensor(const at::Tensor&)>& shard_of);

}  // namespace distributed_utils::detail
