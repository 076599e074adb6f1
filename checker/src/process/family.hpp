#pragma once
#include <sys/types.h>

#include <set>

namespace checker {

/// The processes whose parent this is, as /proc shows them now.
std::set<pid_t> children_of(pid_t parent);

}  // namespace checker
