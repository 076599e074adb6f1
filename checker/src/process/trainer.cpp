#include "process/trainer.hpp"

#include <cstdlib>
#include <cstring>

namespace checker {

std::vector<Command> rank_commands(const TrainerRun& run) {
  std::vector<Command> commands;
  const auto world_size = std::to_string(run.world_size);
  for (size_t rank = 0; rank < run.world_size; ++rank) {
    const auto number = std::to_string(rank);
    Command command;
    command.arguments.push_back(run.program.string());
    command.arguments.insert(command.arguments.end(), run.arguments.begin(), run.arguments.end());
    command.environment = {"RANK=" + number, "LOCAL_RANK=" + number, "WORLD_SIZE=" + world_size,
                           "LOCAL_WORLD_SIZE=" + world_size,
                           "INIT_METHOD=file://" + run.store.string()};
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
           "); all ranks were ended.";
  }
  if (result.output_closed) return "Nobody reads the output any more; all ranks were ended.";
  if (!result.first_failed) return "";
  const auto& failed = result.ranks[*result.first_failed];
  std::string text =
      "rank " + std::to_string(*result.first_failed) + " failed: " + failed.exit.describe() + ".";
  size_t ended = 0;
  for (const auto& rank : result.ranks) ended += rank.ended_by_us ? 1 : 0;
  if (ended > 0) text += " The other ranks that were still running were ended.";
  return text;
}

}  // namespace checker
