#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "distributed_utils/process_group.hpp"

namespace distributed_utils {

/// Scales the gradients of parameters whose pieces lie on the ranks of the group, so that the norm
/// of all their elements is at most max_norm: torch::nn::utils::clip_grad_norm_ for shards, whose
/// own norms differ from rank to rank. Returns the norm that it was: of at least fp32, on the
/// device, for which it does not wait. Every rank of the group calls it; a parameter counts once,
/// though it be named twice. Throws Error for no parameters.
at::Tensor clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm,
                           const Group& group = {});

}  // namespace distributed_utils
