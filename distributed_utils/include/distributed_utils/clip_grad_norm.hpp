#pragma once
/// Gradient clipping for a model whose parameters are sharded over ranks, where no rank knows the
/// whole norm.
#include <ATen/core/Tensor.h>

#include <vector>

#include "distributed_utils/process_group.hpp"

namespace distributed_utils {

/// torch::nn::utils::clip_grad_norm_ for shards. It scales the gradients so that the norm over all
/// elements on all ranks of the group is at most max_norm. Returns the norm before that, as a
/// tensor of at least fp32 on the device, without waiting for the device. Every rank of the group
/// must call it. A parameter that appears twice counts once. Throws Error if there are no
/// parameters.
at::Tensor clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm,
                           const Group& group = {});

}  // namespace distributed_utils
