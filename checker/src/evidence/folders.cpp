#include "evidence/folders.hpp"

#include <string>

namespace checker {

namespace fs = std::filesystem;

fs::path log_of(const fs::path& world, size_t rank) {
  return world / ("log-" + std::to_string(rank));
}

fs::path shared_folder_of(const fs::path& world) { return world / "files"; }

fs::path folder_of(const fs::path& world, size_t rank) {
  const auto shared = shared_folder_of(world);
  return fs::exists(shared) ? shared : world / ("rank-" + std::to_string(rank));
}

fs::path best_model_in(const fs::path& ran_in) { return ran_in / kOutputFolder / "model-best"; }

fs::path continued_of(const fs::path& world) { return world / "continued"; }

fs::path cache_of(const fs::path& world, size_t node) {
  return world / ("cache-" + std::to_string(node));
}

}  // namespace checker
