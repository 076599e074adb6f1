#include "plan/plan.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "process/capture.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

using nlohmann::json;

// "0,0,1": the nodes of the ranks.
std::string in_one_word(const std::vector<size_t>& nodes) {
  std::string text;
  for (const size_t node : nodes) text += (text.empty() ? "" : ",") + std::to_string(node);
  return text;
}

Plan plan_from(const json& value, const std::vector<WorldShape>& worlds) {
  Plan plan{.task = value.at("task"),
            .options = value.at("options"),
            .epochs = value.at("epochs"),
            .max_steps = value.at("max_steps"),
            .batch_size = value.at("batch_size"),
            .samples = value.at("samples"),
            .worlds = {},
            .ranks_add_up = value.at("ranks_add_up"),
            .tolerance = value.at("tolerance"),
            .gradient_tolerance = value.at("gradient_tolerance"),
            .loss_tolerance = value.at("loss_tolerance")};
  for (const auto& world : worlds) {
    plan.worlds.push_back(places_in(world));
    plan.continued.push_back(places_in({.nodes = world.continued}));
  }
  return plan;
}

}  // namespace

std::vector<RankPlace> places_in(const WorldShape& world) {
  std::vector<RankPlace> places;
  for (const auto node : world.nodes) {
    const auto on_it = std::ranges::count(places, node, &RankPlace::node);
    auto& place = places.emplace_back();
    place.rank = places.size() - 1;
    place.local_rank = static_cast<size_t>(on_it);
    place.world_size = world.size();
    place.node = node;
    size_t rest = place.rank;
    for (const auto& [dimension, size] : world.mesh) {
      place.mesh[dimension] = rest % size;
      rest /= size;
    }
  }
  for (auto& place : places) {
    place.local_world_size =
        static_cast<size_t>(std::ranges::count(places, place.node, &RankPlace::node));
  }
  return places;
}

Plan plain_plan(const Step& step, const std::vector<WorldShape>& worlds, uint64_t seed) {
  Plan plan;
  plan.seed = seed;
  plan.tolerance = 1e-6;
  plan.options = step.arguments;
  for (const auto& world : worlds) plan.worlds.push_back(places_in(world));
  return plan;
}

uint64_t fresh_seed() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32 | device()) | 1;
}

std::string prepared_data_of(const std::filesystem::path& folder) {
  return "WORLDSIZE_CACHE=" + (folder / kPlanFolder / "cache").string();
}

Plan make_plan(const std::filesystem::path& replay_program, const PlanRequest& request,
               const std::filesystem::path& folder, ForkServers* servers) {
  const auto own = folder / kPlanFolder;
  std::filesystem::create_directories(own);
  Command command;
  command.arguments = {replay_program.string(), "--plan", own.string(), request.task,
                       std::to_string(request.seed)};
  for (const auto& [key, text] : request.settings) {
    command.arguments.push_back(key + "=" + text);
  }
  for (const auto& world : request.worlds) {
    command.arguments.push_back(in_one_word(world.nodes));
  }
  command.environment = {"OMP_NUM_THREADS=1", prepared_data_of(folder)};
  if (servers) command.server = servers->of(replay_program);
  const auto ran = capture(command);
  if (ran.interrupted_by) throw Error("Interrupted.");
  if (!ran.success()) {
    const auto said = join(split_lines(ran.output), " / ");
    constexpr std::string_view kError = "error: ";
    throw Error("No run could be planned: " +
                said.substr(said.starts_with(kError) ? kError.size() : 0));
  }
  return plan_from(json::parse(read_file(own / "plan.json")), request.worlds);
}

}  // namespace checker
