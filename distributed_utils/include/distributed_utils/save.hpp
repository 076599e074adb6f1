#pragma once
/// Saves and loads a model as a safetensors file, which Python reads too. save0 writes on rank 0
/// only.
#include <torch/nn/module.h>

#include <filesystem>

#include "distributed_utils/process_group.hpp"
#include "distributed_utils/safetensors.hpp"

namespace distributed_utils {

/// Parameters and buffers by name, as in placements(). Wrappers do not show in the names, so one
/// rank can load a model that many ranks saved. If this rank holds a part of a tensor, the entry is
/// that part.
StateDict state_dict(const torch::nn::Module& module);

/// Writes state_dict(module) to a safetensors file (see save_file) on rank 0 of the group. Other
/// ranks return at once: it makes no collective. If ranks hold only parts of the module, all ranks
/// must call it, because it then works like save_full_model().
void save0(const torch::nn::Module& module, const std::filesystem::path& path,
           const Group& group = {});

/// Copies a file's tensors into the module's parameters and buffers, and keeps the module's devices
/// and precision. If this rank holds a part of a tensor, it gets that part. Every rank calls it for
/// itself. If a name is missing or unknown, or a shape differs, it throws Error and changes
/// nothing.
void load(torch::nn::Module& module, const std::filesystem::path& path);

}  // namespace distributed_utils
