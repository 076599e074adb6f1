#pragma once
/// Points of three kinds, and a height at each that depends on both.
#include <cstdint>
#include <memory>
#include <string_view>

#include "tasks/task.hpp"

namespace tasks::points {

struct DataOptions {
  int64_t train_samples = 0;
  int64_t evaluation_samples = 0;  ///< of validation; each further split has two more
  torch::Dtype type = torch::kFloat;
};

constexpr int64_t kKinds = 3;

/// The names of the splits: "near" and "far" hold points near the origin and far from it.
std::vector<std::string> split_names();

/// Inputs: positions [samples, 2] and kinds, int64 [samples]; targets: heights [samples, 1]. The
/// same for the same options.
std::shared_ptr<const Dataset::Source> make_source(std::string_view split,
                                                   const DataOptions& options);

}  // namespace tasks::points
