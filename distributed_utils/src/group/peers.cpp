#include "distributed_utils/peers.hpp"

#include <array>
#include <string>
#include <string_view>
#include <thread>

#include "group/world.hpp"
#include "launch/rendezvous.hpp"
#include "launch/unawaited.hpp"

namespace distributed_utils {
namespace {

using Ranks = std::vector<int>;

// Gloo throws exceptions of its own, whose types libtorch does not export.
bool is_for_want_of_others(std::string_view text) {
  constexpr std::array<std::string_view, 6> phrases{
      "Connection closed by peer", "Connection reset by peer",
      "Timed out waiting",         "Broken pipe",
      "Application timeout",       "NCCL"};
  for (const auto phrase : phrases) {
    if (text.find(phrase) != std::string_view::npos) return true;
  }
  return false;
}

/// groups: the world, and those within it that this rank is in.
Ranks ask(const std::vector<Group>& groups, c10d::Store& store,
          std::chrono::milliseconds patience) {
  const Group& world = groups.front();
  const auto not_heard_of = [&] {
    return detail::ranks_without_mark(store, "lost", world->getSize());
  };
  detail::leave_mark(store, "lost", world->getRank());
  // Others learn of it at once, whichever group they wait in. In NCCL's own thread, where a
  // time-out ends up, an abort never returns, so each gets a thread.
  std::vector<std::future<void>> broken_off;
  for (const auto& group : groups) {
    broken_off.push_back(detail::run_unawaited([group] { group->abort(); }));
  }
  const auto end = std::chrono::steady_clock::now() + patience;
  auto missing = not_heard_of();
  while (!missing.empty() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    missing = not_heard_of();
  }
  for (const auto& one : broken_off) one.wait_until(end);
  return missing;
}

}  // namespace

std::vector<int> lost_peers(const std::exception& error, std::chrono::milliseconds patience) {
  const auto* state = detail::world_state();
  if (!state || state->group->getSize() == 1 || !is_for_want_of_others(error.what())) return {};
  // A store whose server hangs answers nothing, ever, so it is asked by a thread that may stay.
  std::vector<Group> groups = {state->group};
  groups.insert(groups.end(), state->groups.begin(), state->groups.end());
  auto answer = detail::run_unawaited(
      [groups, store = state->store, patience] { return ask(groups, *store, patience); });
  try {
    if (answer.wait_for(patience + std::chrono::seconds(2)) == std::future_status::ready) {
      return answer.get();
    }
  } catch (const std::exception&) {  // the store is gone, and its server with it
  }
  return state->rank_zero_serves ? Ranks{0} : Ranks{};
}

}  // namespace distributed_utils
