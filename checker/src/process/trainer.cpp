#include "process/trainer.hpp"

#include <cstdlib>
#include <cstring>

namespace checker {

std::vector<std::string> rank_environment(const RankPlace& place,
                                          const std::filesystem::path& store) {
  return {"RANK=" + std::to_string(place.rank), "LOCAL_RANK=" + std::to_string(place.local_rank),
          "WORLD_SIZE=" + std::to_string(place.world_size),
          "LOCAL_WORLD_SIZE=" + std::to_string(place.local_world_size),
          "INIT_METHOD=file://" + store.string()};
}

std::vector<Command> rank_commands(const TrainerRun& run) {
  std::vector<Command> commands;
  for (size_t rank = 0; rank < run.world_size; ++rank) {
    Command command;
    command.arguments.push_back(run.program.string());
    command.arguments.insert(command.arguments.end(), run.arguments.begin(), run.arguments.end());
    command.environment = rank_environment({rank, rank, run.world_size, run.world_size}, run.store);
    if (run.world_size > 1 && !std::getenv("OMP_NUM_THREADS")) {
      command.environment.emplace_back("OMP_NUM_THREADS=1");
    }
    commands.push_back(std::move(command));
  }
  return commands;
}

std::string describe_failure(const GroupResult& result) {
  if (result.interrupted_by) {
    return std::string("Interrupted (") + strsignal(result.interrupted_by) +
           "); stopped all ranks.";
  }
  if (result.output_closed) return "Nobody reads the output any longer; stopped all ranks.";
  if (!result.first_failed) return "";
  const auto& failed = result.ranks[*result.first_failed];
  std::string text =
      "rank " + std::to_string(*result.first_failed) + " failed: " + failed.exit.describe() + ".";
  size_t ended = 0;
  for (const auto& rank : result.ranks) ended += rank.ended_by_us ? 1 : 0;
  if (ended > 0) text += " Stopped the other ranks that were still running.";
  return text;
}

}  // namespace checker
