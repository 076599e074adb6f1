#pragma once
/// rank0_first lets one rank of each node work before the others. Use it to prepare data in a
/// folder of the node, which the other ranks then find.
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "distributed_utils/process_group.hpp"

namespace distributed_utils {

namespace detail {
void do_on_first_ranks_first(const std::function<void()>& work, const Group& group);
}

/// Runs `work` on the lowest rank of the group on each node. When all of these are done, it runs
/// `work` on every other rank. Returns what `work` returned on this rank. If it throws on a first
/// rank, no other rank begins. If it throws anywhere, all ranks throw the same Error, which names
/// the lowest such rank. All ranks of the group must call it, and `work` must make no collective.
/// Without a process group the only rank just does the work.
///
/// Ranks with the same host name belong to one node, unless two of them have the same local rank.
/// That happens if one machine runs several "nodes". Other ranks wait up to SetupOptions::timeout.
/// Raise it for work that takes longer.
template <class Work>
auto rank0_first(Work&& work, const Group& group = {}) {
  using Result = std::invoke_result_t<Work&>;
  if constexpr (std::is_void_v<Result>) {
    detail::do_on_first_ranks_first([&] { work(); }, group);
  } else {
    std::optional<std::decay_t<Result>> result;
    detail::do_on_first_ranks_first([&] { result.emplace(work()); }, group);
    return std::move(*result);
  }
}

}  // namespace distributed_utils
