#pragma once
/// Process groups: the world of all ranks, and groups within it. A rank asks here for its number
/// and for the number of ranks.
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <functional>
#include <optional>
#include <vector>

namespace distributed_utils {

/// A set of ranks that call collectives together. In every function that takes a Group, an empty
/// one means the world.
using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

/// True between setup() and destroy_process_group().
bool is_initialized();

/// The group of all ranks. Throws Error before setup() and after destroy_process_group().
Group world_group();

/// `group`, or the world if it is empty. Throws Error where there is no world, and for a group that
/// destroy_process_group() has shut down. All functions of this library that take a Group ask this.
Group group_or_world(const Group& group);

/// This rank within the group; 0 when there is no process group at all, as in a serial program.
int get_rank(const Group& group = {});

/// Number of ranks in the group; 1 when there is no process group at all.
int get_world_size(const Group& group = {});

/// A new group of these ranks of the world, in this order. Every rank of the world must call it, in
/// the same order among other new_group calls; one that is not in `ranks` gets nullopt.
/// Throws Error for an empty list, a rank outside the world, or a rank named twice. The library
/// keeps the group until destroy_process_group().
std::optional<Group> new_group(const std::vector<int>& ranks);

/// Runs `release` once, at the beginning of the next destroy_process_group(). Use it to free what
/// the end of a group waits for: NCCL waits for CUDA graphs that hold its collectives. Throws Error
/// before setup().
void before_destroy(std::function<void()> release);

/// Shuts down all groups, the newest first and the world last, and forgets them. After that,
/// setup() may be called again. All ranks must call it, after their last collective. Using a Group
/// that you still hold is then an Error. Without a process group this does nothing. A program that
/// never calls it still ends cleanly.
void destroy_process_group();

}  // namespace distributed_utils
