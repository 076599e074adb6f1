#include "judge/worlds.hpp"

#include <algorithm>

#include "judge/run_context.hpp"
#include "process/gpus.hpp"
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

}  // namespace

Worlds worlds_for(const Conditions& conditions, const std::vector<int>& sizes, bool on_gpus) {
  Worlds worlds{.shapes = asked_for(conditions, sizes), .not_checked = {}};
  if (!on_gpus) return worlds;
  const size_t gpus = gpus_here();
  std::erase_if(worlds.shapes, [&](WorldShape& world) {
    const auto size = world.size();
    world.nodes.assign(size, 0);
    world.continued.assign(std::min(world.continued.size(), gpus), 0);
    if (size <= gpus) return false;
    worlds.not_checked.push_back(
        "world size " + std::to_string(size) + ": there " +
        (gpus == 1 ? "is 1 GPU" : "are " + std::to_string(gpus) + " GPUs") + " here");
    return true;
  });
  if (worlds.shapes.empty()) {
    throw Error("--device cuda: no usable GPU here. Fix: --device cpu");
  }
  return worlds;
}

std::vector<std::string> not_checked_on(const std::string& device, const Course& course,
                                        const Step& step) {
  if (step.is_beside()) return {};  // an exercise runs on CPUs, wherever it runs
  if (device != "cpu") return {"several nodes: here each local rank equals its rank"};
  std::vector<std::string> lines{"GPUs and NCCL: this check ran on CPUs, over Gloo"};
  // The run is told what setup() would choose by itself on CPUs.
  const auto sets_up = [&](int todo) {
    const auto& features = course.todos.at(todo).features;
    return std::ranges::find(features, feature::setup) != features.end();
  };
  if (std::ranges::any_of(step.todos, sets_up)) {
    lines.emplace_back(
        "other values of --device and --backend: a setup() with these two typed in passes here");
  }
  return lines;
}

}  // namespace checker
