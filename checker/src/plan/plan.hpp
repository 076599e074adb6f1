#pragma once
/// What a judged run does. The replay program writes it, because it knows the task; whoever runs,
/// replays or judges the run reads it.
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "course/course.hpp"
#include "process/fork_server.hpp"
#include "process/trainer.hpp"

namespace checker {

/// Where in its folder a plan lies, with the data and the configuration that it names.
constexpr const char* kPlanFolder = "secret";

struct Plan {
  std::string task;
  std::vector<std::string> options;                       ///< the trainer's
  size_t epochs = 0, max_steps = 0;                       ///< max_steps: 0: no limit
  size_t batch_size = 0;                                  ///< samples in a rank's batch
  std::vector<std::pair<std::string, uint64_t>> samples;  ///< of each split, in the task's order
  std::vector<std::vector<RankPlace>> worlds;             ///< side by side; the places of the ranks
  /// Of the run that starts from what the world's run leaves; empty where there is none.
  std::vector<std::vector<RankPlace>> continued = {};
  /// Whether W ranks with batches of B samples compute what one rank does with batches of W * B:
  /// not where batches hold unequally many targets, or a model looks at the batch as a whole.
  bool ranks_add_up = false;
  uint64_t seed = 0;     ///< of the numbers that a plain program's ranks have
  double tolerance = 0;  ///< results that differ by less, relatively, are equal
  double gradient_tolerance = 0, loss_tolerance = 0;  ///< the same of gradients, reported losses
};

struct PlanRequest {
  std::string task;
  uint64_t seed = 0;  ///< the same seed gives the same plan and data
  std::vector<WorldShape> worlds;
  /// Of the task's configuration, instead of those that the task chooses.
  std::vector<std::pair<std::string, std::string>> settings = {};
};

/// The places of a world's ranks. In a mesh the first dimension's coordinate changes fastest with
/// the rank.
std::vector<RankPlace> places_in(const WorldShape& world);

/// What a plain program of this step does, in these worlds. The same seed gives the same numbers.
Plan plain_plan(const Step& step, const std::vector<WorldShape>& worlds, uint64_t seed);

/// A seed that nobody knows beforehand.
uint64_t fresh_seed();

/// The variable that tells the replay program where to prepare data: with the plan in this folder.
std::string prepared_data_of(const std::filesystem::path& folder);

/// Has the replay program write plan, data and configuration into <folder>/secret. servers: one of
/// them may be the replay's; may be null. Throws Error if it fails.
Plan make_plan(const std::filesystem::path& replay_program, const PlanRequest& request,
               const std::filesystem::path& folder, ForkServers* servers);

}  // namespace checker
