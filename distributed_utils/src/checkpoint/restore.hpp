#pragma once
/// Loading in two halves: checks that throw, and then what can no longer fail, so that all ranks
/// can agree in between.
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <filesystem>
#include <functional>

#include "distributed_utils/safetensors.hpp"

namespace distributed_utils::detail {

/// What copies `from`, this rank's pieces of what was read from `path`, into the module. Throws
/// Error if a name is missing or unknown.
std::function<void()> prepare_load(torch::nn::Module& module, StateDict from,
                                   const std::filesystem::path& path);

/// What replaces the optimizer's state. Throws Error as load_optimizer_state_dict() does.
std::function<void()> prepare_load(torch::optim::Optimizer& optimizer,
                                   const torch::nn::Module& model, const StateDict& from);

}  // namespace distributed_utils::detail
