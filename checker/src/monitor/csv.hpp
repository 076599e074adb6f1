#pragma once
#include <filesystem>

#include "monitor/run.hpp"

namespace checker::monitor {

/// Writes steps.csv, collectives.csv, ranks.csv (CPU, memory, I/O), nodes.csv and gpus.csv into a
/// folder, which it makes: seconds, bytes; a field is empty where nothing is known. Throws Error.
void write_csv(const Run& run, const std::filesystem::path& folder);

}  // namespace checker::monitor
