#pragma once
/// The one piece of global state: the default group, and what was made within it.
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "distributed_utils/process_group.hpp"

namespace distributed_utils::detail {

/// What new groups inherit from the world.
struct WorldState {
  Group group;
  c10::intrusive_ptr<c10d::Store> store;
  bool rank_zero_serves;  ///< the store ends with rank 0
  c10::Device device;
  std::string backend;
  std::chrono::milliseconds timeout;
  bool single_node;
  int groups_made = 0;
  std::vector<std::function<void()>> releases = {};  ///< see before_destroy()
  std::vector<Group> groups = {};  ///< within the world, as they were made: to be shut down
};

/// Null before setup() and after destroy_process_group(). It is never destroyed statically: threads
/// of Gloo and NCCL may outlive main, and a program that forgets destroy_process_group() must still
/// end cleanly.
WorldState*& world_state();

/// Connects `ranks` (world ranks; `rank` is this one's index) to a group. The state's store,
/// device, backend and timeout apply.
Group make_group(const WorldState& state, const std::string& name, const std::vector<int>& ranks,
                 int rank);

/// The same for a group within the world, which destroy_process_group() will shut down.
Group make_group_within(WorldState& state, const std::string& name, const std::vector<int>& ranks,
                        int rank);

}  // namespace distributed_utils::detail
