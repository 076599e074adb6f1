#include "process/gpus.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace checker {

size_t gpus_here() {
  size_t on_machine = 0;
  while (std::filesystem::exists("/dev/nvidia" + std::to_string(on_machine))) ++on_machine;
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!visible) return on_machine;
  const std::string list(visible);
  if (list.empty()) return 0;
  const auto listed = static_cast<size_t>(std::ranges::count(list, ',')) + 1;
  return std::min(listed, on_machine);
}

}  // namespace checker
