#include "distributed_utils/peers.hpp"

#include <array>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "world.hpp"

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

std::string key_of(int rank) { return "lost/" + std::to_string(rank); }

Ranks not_heard_of(c10d::Store& store, int world_size) {
  Ranks missing;
  for (int rank = 0; rank < world_size; ++rank) {
    if (!store.check({key_of(rank)})) missing.push_back(rank);
  }
  return missing;
}

Ranks ask(const Group& group, c10d::Store& store, std::chrono::milliseconds patience) {
  store.set(key_of(group->getRank()), std::vector<uint8_t>{1});
  group->abort();
  const auto end = std::chrono::steady_clock::now() + patience;
  auto missing = not_heard_of(store, group->getSize());
  while (!missing.empty() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    missing = not_heard_of(store, group->getSize());
  }
  return missing;
}

}  // namespace

std::vector<int> lost_peers(const std::exception& error, std::chrono::milliseconds patience) {
  const auto* state = detail::world_state();
  if (!state || state->group->getSize() == 1 || !is_for_want_of_others(error.what())) return {};
  // A store whose server hangs answers nothing, ever, so it is asked by a thread that may stay.
  const auto answer = std::make_shared<std::promise<Ranks>>();
  auto future = answer->get_future();
  std::thread([answer, group = state->group, store = state->store, patience] {
    try {
      answer->set_value(ask(group, *store, patience));
    } catch (...) {
      answer->set_exception(std::current_exception());
    }
  }).detach();
  try {
    if (future.wait_for(patience + std::chrono::seconds(2)) == std::future_status::ready) {
      return future.get();
    }
  } catch (const std::exception&) {  // the store is gone, and its server with it
  }
  return state->rank_zero_serves ? Ranks{0} : Ranks{};
}

}  // namespace distributed_utils
