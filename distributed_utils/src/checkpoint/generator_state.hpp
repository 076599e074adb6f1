#pragma once
#include <torch/nn/module.h>

#include <cstdint>

#include "distributed_utils/safetensors.hpp"

namespace distributed_utils::detail {

/// The states of torch's default generators: "generator.cpu", and "generator.cuda" if the model is
/// on a GPU: that one's.
StateDict generator_states(const torch::nn::Module& model);

/// Sets them; one whose state is not in `states` is seeded with `seed`.
void restore_generators(const StateDict& states, const torch::nn::Module& model, uint64_t seed);

}  // namespace distributed_utils::detail
