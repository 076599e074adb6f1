#pragma once
/// What a judged run trains on: small, quick, and unknown to the program until it runs.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace checker {

/// How many epochs the configuration asks for.
constexpr size_t kSecretEpochs = 3;
/// Samples in a batch.
constexpr size_t kSecretBatch = 3;

/// Where in its folder.
constexpr const char* kSecretFolder = "secret";

/// Writes data and configuration into the folder and returns the trainer's options for them. Sizes
/// divide by no world size and differ between the splits; dropout is 0 and precision fp64, so that
/// losses and gradients can be compared exactly. The same seed gives the same files.
std::vector<std::string> make_secret(uint64_t seed, const std::filesystem::path& folder);

/// A seed that nobody knows beforehand.
uint64_t fresh_seed();

}  // namespace checker
