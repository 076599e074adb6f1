#pragma once
/// Saving and loading a module.
#include <torch/nn/module.h>

#include <filesystem>

#include "distributed_utils/process_group.hpp"
#include "distributed_utils/safetensors.hpp"

namespace distributed_utils {

/// Parameters and buffers by name. A DistributedDataParallel is unwrapped: names are those of the
/// module inside, so that a model saved by many ranks can be loaded by one.
StateDict state_dict(const torch::nn::Module& module);

/// Writes state_dict(module) to a safetensors file (see save_file) on rank 0 of the group; other
/// ranks return at once. No collective: nobody waits for the file.
void save0(const torch::nn::Module& module, const std::filesystem::path& path,
           const Group& group = {});

/// Copies a file's tensors into the module's parameters and buffers, keeping the module's devices
/// and precision. Every rank calls it for itself. Throws Error, and changes nothing, if a name is
/// missing or unknown or a shape differs.
void load(torch::nn::Module& module, const std::filesystem::path& path);

}  // namespace distributed_utils
