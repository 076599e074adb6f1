#pragma once
#include <functional>
#include <string>
#include <vector>

#include "distributed_utils/process_group.hpp"

namespace distributed_utils::detail {

/// Does `work` on every rank and gives all ranks what each returned. If it throws on any, all ranks
/// throw the same Error: that of the lowest such rank. Every rank of the group calls it, so that
/// nobody waits for one that has given up. Without a process group there is one rank.
std::vector<std::string> together(const Group& group, const std::function<std::string()>& work);

}  // namespace distributed_utils::detail
