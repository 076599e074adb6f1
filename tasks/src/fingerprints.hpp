#pragma once
/// Samples are recognised by their values, whatever a program did with the tensors that they came
/// in: it may copy them, keep them on a device, or cut batches into parts.
#include <cstdint>
#include <vector>

#include "tasks/batch.hpp"

namespace tasks {

/// A hash of each sample's bytes. The first dimension of each tensor is the samples; tensors that
/// disagree on how many there are have none.
std::vector<uint64_t> fingerprints_of(const Input& input);
std::vector<uint64_t> fingerprints_of(const Target& target);

}  // namespace tasks
