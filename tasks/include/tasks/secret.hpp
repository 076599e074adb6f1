#pragma once
/// Small runs that a judge makes of a task: quick, and unknown to a program until it runs.
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tasks {

/// Writes data and configuration of a small run of this task into the folder, and returns the
/// trainer's options for it. The same seed gives the same files. Sizes divide by no world size and
/// differ between the splits; nothing is random in the forward pass and the precision is fp64, so
/// that losses and gradients can be compared exactly. Throws Error for a task that has none.
std::vector<std::string> make_secret(std::string_view task, uint64_t seed,
                                     const std::filesystem::path& folder);

}  // namespace tasks
