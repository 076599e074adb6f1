#pragma once
#include <torch/optim/optimizer.h>

namespace tasks {

/// Records, for monitoring, how large the gradients are with which the optimizer is about to step:
/// in an early step, then every ten seconds, because a GPU is made to wait for it.
void record_gradient_sizes(const torch::optim::Optimizer& optimizer, uint64_t step);

}  // namespace tasks
