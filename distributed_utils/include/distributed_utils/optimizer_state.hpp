#pragma once
/// Saves the state of an optimizer under the names of the model's parameters. LibTorch's own
/// Optimizer::save only counts parameters, and only LibTorch reads its files.
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include "distributed_utils/safetensors.hpp"

namespace distributed_utils {

/// Of torch::optim::Adam and AdamW: "step.<name>", "exp_avg.<name>", "exp_avg_sq.<name>" and, with
/// amsgrad, "max_exp_avg_sq.<name>"; of SGD "momentum_buffer.<name>": what Python's optimizers call
/// them in state_dict()["state"]. Of each parameter group "lr.<number>", which schedulers change.
/// <name> as in state_dict(model). Classes derived from these count as these. Throws Error for an
/// optimizer of another kind that has state, and for a parameter that is not the model's.
StateDict optimizer_state_dict(const torch::optim::Optimizer& optimizer,
                               const torch::nn::Module& model);

/// Replaces the optimizer's whole state, on its parameters' devices, and its learning rates. Throws
/// Error, and changes nothing, if `state` is of another kind of optimizer, or of parameters with
/// other names, shapes or groups.
void load_optimizer_state_dict(torch::optim::Optimizer& optimizer, const torch::nn::Module& model,
                               const StateDict& state);

}  // namespace distributed_utils
