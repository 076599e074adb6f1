#pragma once
#include <sys/types.h>

#include <cstddef>
#include <filesystem>

namespace checker {

/// Starts a node of the lab whose controller's namespaces the caller is in: a machine with
/// processes, mounts and a network of its own that runs slurmd. When slurmd ends, all that runs on
/// the node ends, as if its power were cut. Returns once slurmd runs, which is before the
/// controller knows it. Throws Error.
void start_node(const std::filesystem::path& folder, size_t number);

/// The node's first process, as the caller sees it; 0 if the node does not run. `lab` is the lab's
/// first process.
pid_t find_node(pid_t lab, size_t number);

}  // namespace checker
