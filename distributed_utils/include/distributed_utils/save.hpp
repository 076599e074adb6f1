#pragma once
/// Saving and loading a module.
#include <torch/nn/module.h>

#include <filesystem>

#include "distributed_utils/process_group.hpp"
#include "distributed_utils/safetensors.hpp"

namespace distributed_utils {

/// Parameters and buffers by name, as placements() names them: a wrapper does not show, so that a
/// model saved by many ranks can be loaded by one. Where this rank holds a part, the part.
StateDict state_dict(const torch::nn::Module& module);

/// Writes state_dict(module) to a safetensors file (see save_file) on rank 0 of the group; other
/// ranks return at once. No collective: nobody waits for the file. A module of which ranks hold
/// only parts is another matter: all ranks must call it, as save_full_model(), which it is then.
void save0(const torch::nn::Module& module, const std::filesystem::path& path,
           const Group& group = {});

/// Copies a file's tensors into the module's parameters and buffers, keeping the module's devices
/// and precision; where this rank holds a part, that part of the tensor. Every rank calls it for
/// itself. Throws Error, and changes nothing, if a name is missing or unknown or a shape differs.
void load(torch::nn::Module& module, const std::filesystem::path& path);

}  // namespace distributed_utils
