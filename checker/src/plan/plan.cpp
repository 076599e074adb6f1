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

// A rank's place among the ranks that are on its node.
std::vector<RankPlace> world_from(const json& nodes) {
  std::vector<RankPlace> places;
  for (const auto& node : nodes) {
    const auto on_it = [&](const RankPlace& place) { return place.node == node.get<size_t>(); };
    places.push_back({.rank = places.size(),
                      .local_rank = static_cast<size_t>(std::ranges::count_if(places, on_it)),
                      .world_size = nodes.size(),
                      .local_world_size = 0,
                      .node = node});
  }
  for (auto& place : places) {
    place.local_world_size =
        static_cast<size_t>(std::ranges::count(places, place.node, &RankPlace::node));
  }
  return places;
}

Plan plan_from(const json& value) {
  Plan plan{.task = value.at("task"),
            .options = value.at("options"),
            .epochs = value.at("epochs"),
            .batch_size = value.at("batch_size"),
            .samples = value.at("samples"),
            .worlds = {},
            .ranks_add_up = value.at("ranks_add_up"),
            .tolerance = value.at("tolerance"),
            .loss_tolerance = value.at("loss_tolerance")};
  for (const auto& nodes : value.at("worlds")) plan.worlds.push_back(world_from(nodes));
  return plan;
}

}  // namespace

uint64_t fresh_seed() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32 | device()) | 1;
}

Plan make_plan(const std::filesystem::path& replay_program, const PlanRequest& request,
               const std::filesystem::path& folder, ForkServers* servers) {
  const auto own = folder / kPlanFolder;
  std::filesystem::create_directories(own);
  Command command;
  command.arguments = {replay_program.string(), "--plan", own.string(), request.task,
                       std::to_string(request.seed)};
  for (const auto& nodes : request.nodes) command.arguments.push_back(in_one_word(nodes));
  command.environment = {"OMP_NUM_THREADS=1"};
  if (servers) command.server = servers->of(replay_program);
  const auto ran = capture(command);
  if (ran.interrupted_by) throw Error("Interrupted.");
  if (!ran.success()) {
    throw Error("The replay program made no plan of the run: " +
                join(split_lines(ran.output), " / "));
  }
  return plan_from(json::parse(read_file(own / "plan.json")));
}

}  // namespace checker
