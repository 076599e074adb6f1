#include "judge/worlds.hpp"

#include <algorithm>

#include "process/gpus.hpp"
#include "support/error.hpp"

namespace checker {

namespace {

std::vector<std::vector<size_t>> asked_for(const Chapter& chapter, const std::vector<int>& sizes) {
  if (sizes.empty()) return chapter.worlds;
  std::vector<std::vector<size_t>> all;
  for (const int size : sizes) {
    const auto world = static_cast<size_t>(size);
    const auto known = std::ranges::find(chapter.worlds, world, &std::vector<size_t>::size);
    all.push_back(known != chapter.worlds.end() ? *known : std::vector<size_t>(world));
  }
  return all;
}

}  // namespace

Worlds worlds_for(const Chapter& chapter, const std::vector<int>& sizes, bool on_gpus) {
  Worlds worlds{.nodes = asked_for(chapter, sizes), .not_checked = {}};
  if (!on_gpus) return worlds;
  const size_t gpus = gpus_here();
  std::erase_if(worlds.nodes, [&](std::vector<size_t>& nodes) {
    const auto size = nodes.size();
    nodes.assign(size, 0);
    if (size <= gpus) return false;
    worlds.not_checked.push_back(
        "world size " + std::to_string(size) + ": there " +
        (gpus == 1 ? "is 1 GPU" : "are " + std::to_string(gpus) + " GPUs") + " here");
    return true;
  });
  if (worlds.nodes.empty()) {
    throw Error("There is no GPU here that --device cuda could use. Mend: --device cpu");
  }
  return worlds;
}

}  // namespace checker
