#pragma once
#include <future>
#include <thread>
#include <utility>

namespace distributed_utils::detail {

/// Starts work that may never end, in a thread that is left behind then. Its result, if it comes.
template <class Work>
auto run_unawaited(Work work) {
  std::packaged_task<decltype(work())()> task(std::move(work));
  auto result = task.get_future();
  std::thread(std::move(task)).detach();
  return result;
}

}  // namespace distributed_utils::detail
