#pragma once
#include <filesystem>

#include "monitor/run.hpp"

namespace checker::monitor {

/// Writes an event file for each rank into a folder of its own below `folder`, which it makes:
/// scalars by step (loss, learning rate, tokens/s, times of a step's phases) and by sample (CPUs,
/// memory, GPUs), histograms of gradients, and the configuration as text. Throws Error.
void write_tensorboard(const Run& run, const std::filesystem::path& folder);

}  // namespace checker::monitor
