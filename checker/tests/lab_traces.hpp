#pragma once
/// What a lab leaves on the machine, or should not leave.
#include <sys/types.h>

#include <set>
#include <string>

namespace checker::testing {

/// The namespaces that the processes below this one are in and we are not.
std::set<std::string> namespaces_below(pid_t first_process);

/// Waits until no process of the machine is in one of these namespaces. Returns what is left after
/// half a minute: namespaces with their processes, and mounts whose path holds `folder`. A zombie
/// holds nothing, and how long it stays is up to the machine's PID 1.
std::string traces_of(const std::set<std::string>& namespaces, const std::string& folder);

}  // namespace checker::testing
