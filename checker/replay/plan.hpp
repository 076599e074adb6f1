#pragma once
/// Plans of judged runs: see checker/src/plan/plan.hpp.
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace replay {

/// Writes plan.json, data and configuration into the folder. nodes: of each world the node of each
/// rank, "0,0,1". Throws tasks::Error.
void write_plan(const std::filesystem::path& folder, const std::string& task, uint64_t seed,
                std::span<const std::string> nodes);

}  // namespace replay
