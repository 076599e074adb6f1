#pragma once
/// Work that one rank of each node does before the others: preparing data in a folder of the node,
/// say, which the others then find.
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "distributed_utils/process_group.hpp"

namespace distributed_utils {

namespace detail {
void do_on_first_ranks_first(const std::function<void()>& work, const Group& group);
}

/// Does `work` on the lowest rank of the group on each node; when all of these have done it, on
/// every other rank. Returns what `work` returned on this rank. If it throws on a first rank, no
/// other rank begins; if it throws anywhere, all ranks throw the same Error, which names the lowest
/// such rank. All ranks of the group call it; `work` makes no collective. Without a process group
/// there is one rank, which just does it.
///
/// Ranks of one host name are of one node, unless two of them have the same local rank, as where
/// several "nodes" are started on one machine. Others wait no longer than SetupOptions::timeout:
/// set it higher for work that takes longer.
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
