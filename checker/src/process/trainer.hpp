#pragma once
/// Running a step's or a solution's program as one rank or several.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "process/ranks.hpp"

namespace checker {

struct TrainerRun {
  std::filesystem::path program;
  size_t world_size = 1;
  std::vector<std::string> arguments;
  /// Where the ranks meet: a file that does not exist yet, in a private folder.
  std::filesystem::path store;
};

/// A rank's place in its world.
struct RankPlace {
  size_t rank = 0, local_rank = 0, world_size = 1, local_world_size = 1, node = 0;
  std::map<std::string, size_t> mesh = {};  ///< its coordinates, where the ranks form one
};

/// The variables by which torchrun tells a rank its place, and the FileStore to meet at.
std::vector<std::string> rank_environment(const RankPlace& place,
                                          const std::filesystem::path& store);

/// One command per rank, with the variables that torchrun would set and a FileStore to meet at.
/// OMP_NUM_THREADS is 1 for several ranks, unless the user has set it.
std::vector<Command> rank_commands(const TrainerRun& run);

/// "rank 1 failed: killed by signal 11 (Segmentation fault)", or what else ended the run early;
/// empty after a success.
std::string describe_failure(const GroupResult& result);

}  // namespace checker
