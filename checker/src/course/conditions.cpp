#include "course/conditions.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

// [0, 0, 1], or {nodes: [0, 0, 1, 1], mesh: {tp: 2, dp: 2}}, or {nodes: [0, 0], continued: [0]}.
std::vector<WorldShape> read_worlds(const fs::path& file, const YAML::Node& nodes) try {
  if (!nodes.IsSequence() || nodes.size() == 0) throw YAML::Exception(nodes.Mark(), "");
  std::vector<WorldShape> worlds;
  for (const auto& node : nodes) {
    if (node.IsSequence()) {
      worlds.push_back({.nodes = node.as<std::vector<size_t>>()});
      continue;
    }
    const Mapping mapping(file, node, {"nodes", "mesh", "continued"});
    WorldShape world{.nodes = mapping.list<size_t>("nodes")};
    if (mapping.has("continued")) world.continued = mapping.list<size_t>("continued");
    if (!mapping.has("mesh")) {
      worlds.push_back(std::move(world));
      continue;
    }
    size_t ranks = 1;
    for (const auto& dimension : mapping.node("mesh")) {
      world.mesh.emplace_back(dimension.first.as<std::string>(), dimension.second.as<size_t>());
      ranks *= world.mesh.back().second;
    }
    if (ranks != world.size()) {
      fail(file, node.Mark(),
           "a mesh of " + std::to_string(ranks) + " ranks does not fit a world of " +
               std::to_string(world.size()) + ".");
    }
    worlds.push_back(std::move(world));
  }
  return worlds;
} catch (const YAML::Exception&) {
  fail(file, nodes.Mark(), "worlds must be a list of worlds: the node of each rank.");
}

// {worlds: [...], settings: {epochs: 4}}
std::vector<Conditions> read_plans(const fs::path& file, const YAML::Node& nodes) {
  if (!nodes.IsSequence() || nodes.size() == 0)
    fail(file, nodes.Mark(), "plans must be a list of plans: worlds and settings.");
  std::vector<Conditions> plans;
  for (const auto& node : nodes) {
    const Mapping mapping(file, node, {"worlds", "settings"});
    auto& plan = plans.emplace_back();
    plan.worlds = read_worlds(file, mapping.node("worlds"));
    if (!mapping.has("settings")) continue;
    for (const auto& setting : mapping.node("settings"))
      plan.settings.emplace_back(setting.first.as<std::string>(), setting.second.as<std::string>());
  }
  return plans;
}

}  // namespace

std::vector<Conditions> read_conditions(const fs::path& file, const Mapping& mapping) {
  if (mapping.has("plans")) return read_plans(file, mapping.node("plans"));
  if (!mapping.has("worlds")) return {};
  return {{.worlds = read_worlds(file, mapping.node("worlds"))}};
}

}  // namespace checker
