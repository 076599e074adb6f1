#pragma once
/// Plans of judged runs: see checker/src/plan/plan.hpp.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace replay {

struct Request {
  std::string task;
  uint64_t seed = 0;
  /// Lines of the configuration, "epochs: 4", instead of those that the task chooses.
  std::vector<std::string> settings;
  std::vector<std::string> nodes;  ///< of each world the node of each rank, "0,0,1"
};

/// Writes plan.json, data and configuration into the folder. Throws tasks::Error.
void write_plan(const std::filesystem::path& folder, const Request& request);

}  // namespace replay
