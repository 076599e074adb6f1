#include "judge/worlds.hpp"

#include <algorithm>
#include <functional>

#include "support/error.hpp"

namespace checker {

namespace {

std::vector<WorldShape> asked_for(const Conditions& conditions, const std::vector<int>& sizes) {
  if (sizes.empty()) return conditions.worlds;
  const bool continues = std::ranges::any_of(
      conditions.worlds, [](const WorldShape& world) { return !world.continued.empty(); });
  std::vector<WorldShape> all;
  for (const int size : sizes) {
    const auto world = static_cast<size_t>(size);
    const auto known = std::ranges::find(conditions.worlds, world, &WorldShape::size);
    if (known != conditions.worlds.end()) {
      all.push_back(*known);
      continue;
    }
    auto& shape = all.emplace_back(WorldShape{.nodes = std::vector<size_t>(world)});
    if (continues) shape.continued.assign(world == 1 ? 2 : 1, 0);
  }
  return all;
}

// Ranks need a GPU each, and all of those are on one node.
void fit(std::vector<WorldShape>& shapes, size_t gpus) {
  for (auto& world : shapes) {
    // A mesh keeps its size. Any other world only need be large: two ranks hide what three show.
    if (world.mesh.empty()) world.nodes.resize(std::min(world.size(), gpus));
    std::ranges::fill(world.nodes, 0U);
    world.continued.assign(std::min(world.continued.size(), gpus), 0);
  }
}

// The worlds of a plan, without those that became equal.
void drop_repeated(std::vector<WorldShape>& shapes) {
  std::vector<WorldShape> kept;
  for (auto& shape : shapes) {
    const bool known = std::ranges::any_of(kept, [&](const WorldShape& other) {
      return other.nodes == shape.nodes && other.mesh == shape.mesh &&
             other.continued == shape.continued;
    });
    if (!known) kept.push_back(std::move(shape));
  }
  shapes = std::move(kept);
}

std::string too_large(size_t size, size_t gpus) {
  return "world size " + std::to_string(size) + ": there " +
         (gpus == 1 ? "is 1 GPU" : "are " + std::to_string(gpus) + " GPUs") + " here";
}

}  // namespace

Worlds worlds_for(const Conditions& conditions, const std::vector<int>& sizes,
                  std::optional<size_t> gpus) {
  Worlds worlds{.shapes = asked_for(conditions, sizes), .not_checked = {}};
  if (!gpus) return worlds;
  for (const auto& world : worlds.shapes) {
    if (world.size() > *gpus) worlds.not_checked.push_back(too_large(world.size(), *gpus));
  }
  // A size that somebody asked for is not replaced by another.
  const auto stays = [&](const WorldShape& world) {
    return world.size() <= *gpus || (sizes.empty() && world.mesh.empty() && *gpus > 0);
  };
  std::erase_if(worlds.shapes, std::not_fn(stays));
  fit(worlds.shapes, *gpus);
  drop_repeated(worlds.shapes);
  if (worlds.shapes.empty()) {
    throw Error("--device cuda: no usable GPU here. Fix: --device cpu");
  }
  return worlds;
}

}  // namespace checker
