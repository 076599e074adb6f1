#include "distributed_utils/process_group.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <utility>

#include "distributed_utils/error.hpp"
#include "distributed_utils/observer.hpp"
#include "group/backend.hpp"
#include "group/world.hpp"

namespace distributed_utils {
namespace {

using WeakGroup = c10::weak_intrusive_ptr<c10d::ProcessGroup>;

/// The groups that were shut down. Weak, so that a Group that somebody still holds is told from a
/// new one that has come to lie at the same address. Never destroyed: see world_state().
std::vector<WeakGroup>& ended_groups() {
  static auto* groups = new std::vector<WeakGroup>;
  return *groups;
}

bool has_ended(const Group& group) {
  return std::ranges::any_of(ended_groups(),
                             [&](const WeakGroup& ended) { return ended.lock() == group; });
}

void shut_down(const Group& group) {
  ended_groups().emplace_back(group);
  group->shutdown();
}

}  // namespace

namespace detail {

WorldState*& world_state() {
  static WorldState* state = nullptr;
  return state;
}

Group make_group(const WorldState& state, const std::string& name, const std::vector<int>& ranks,
                 int rank) {
  using c10d::ProcessGroup;
  const int size = static_cast<int>(ranks.size());
  const auto store = c10::make_intrusive<c10d::PrefixStore>(name, state.store);
  auto group = c10::make_intrusive<ProcessGroup>(store, rank, size);
  std::function<Observer::BackendPtr(Observer::BackendPtr)> wrap;
  if (Observer* const watching = observer()) {
    wrap = watching->wrap_backends({.name = name, .rank = rank, .size = size, .ranks = ranks});
  }
  const auto add = [&](c10::DeviceType device, ProcessGroup::BackendType type, const char* prefix,
                       auto factory) {
    auto backend = factory(BackendRequest{c10::make_intrusive<c10d::PrefixStore>(prefix, store),
                                          rank, size, state.timeout, state.single_node});
    group->setBackend(device, type, wrap ? wrap(std::move(backend)) : std::move(backend));
  };
  if (state.backend == "nccl") {
    group->setBoundDeviceId(state.device);
    add(c10::kCUDA, ProcessGroup::NCCL, "nccl", make_nccl);
    // As in Python, so that tensors that stayed on the CPU can be reduced as well.
    if (has_gloo()) add(c10::kCPU, ProcessGroup::GLOO, "gloo", make_gloo);
    group->setDefaultBackend(ProcessGroup::NCCL);
  } else {
    add(c10::kCPU, ProcessGroup::GLOO, "gloo", make_gloo);
    if (state.device.is_cuda()) {  // Gloo copies through the host: slow, but good for exercises
      group->setBackend(c10::kCUDA, ProcessGroup::GLOO, group->getBackend(c10::kCPU));
    }
    group->setDefaultBackend(ProcessGroup::GLOO);
  }
  group->setGroupName(name);
  group->setGroupDesc(name);
  return group;
}

Group make_group_within(WorldState& state, const std::string& name, const std::vector<int>& ranks,
                        int rank) {
  return state.groups.emplace_back(make_group(state, name, ranks, rank));
}

}  // namespace detail

bool is_initialized() { return detail::world_state() != nullptr; }

Group world_group() {
  if (!is_initialized()) {
    if (!ended_groups().empty()) {
      throw Error(
          "There is no process group: destroy_process_group() has shut it down. Fix: call that "
          "last. An object that calls it must live until the end of main().");
    }
    throw Error("There is no process group yet. Fix: call distributed_utils::setup() first.");
  }
  return detail::world_state()->group;
}

Group group_or_world(const Group& group) {
  if (!group) return world_group();
  if (has_ended(group)) {
    throw Error(
        fmt::format("destroy_process_group() has shut down the group '{}'. Fix: call that after "
                    "the last use of a group, or make the group again after setup().",
                    group->getGroupName()));
  }
  return group;
}

int get_rank(const Group& group) {
  if (!group && !is_initialized()) return 0;
  return group_or_world(group)->getRank();
}

int get_world_size(const Group& group) {
  if (!group && !is_initialized()) return 1;
  return group_or_world(group)->getSize();
}

std::optional<Group> new_group(const std::vector<int>& ranks) {
  const Group world = world_group();
  const bool valid =
      std::ranges::all_of(ranks, [&](int rank) { return rank >= 0 && rank < world->getSize(); });
  if (ranks.empty() || !valid || std::set(ranks.begin(), ranks.end()).size() != ranks.size()) {
    throw Error(fmt::format("new_group([{}]): expected different ranks from 0 to {}.",
                            fmt::join(ranks, ", "), world->getSize() - 1));
  }
  detail::WorldState& state = *detail::world_state();
  const std::string name = fmt::format("group{}", ++state.groups_made);
  const auto self = std::ranges::find(ranks, world->getRank());
  if (self == ranks.end()) return std::nullopt;
  return detail::make_group_within(state, name, ranks, static_cast<int>(self - ranks.begin()));
}

void before_destroy(std::function<void()> release) {
  (void)world_group();
  detail::world_state()->releases.push_back(std::move(release));
}

void destroy_process_group() {
  detail::WorldState*& state = detail::world_state();
  if (!state) return;
  for (const auto& release : std::exchange(state->releases, {})) release();
  // The last one first: on every rank the same order, and none outlives the world.
  auto& groups = state->groups;
  for (; !groups.empty(); groups.pop_back()) shut_down(groups.back());
  shut_down(state->group);
  delete state;
  state = nullptr;
}

}  // namespace distributed_utils
