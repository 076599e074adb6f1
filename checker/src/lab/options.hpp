#pragma once
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace checker {

/// What a lab is to be like: the cluster that it plays.
struct LabOptions {
  std::string name{};           ///< lower-case letters, digits and -; empty: a free one
  size_t nodes = 2;             ///< 1 to 16: n1, n2, ...
  size_t gpus_per_node = 4;     ///< 1 to 16 stand-ins: character devices like /dev/null
  size_t cpus_per_node = 8;     ///< what Slurm believes, however few the machine has
  size_t memory_per_node = 64;  ///< GiB, likewise
  std::vector<std::string> partitions{"main"};  ///< all hold all nodes; the first is the default
  std::string reservation{};  ///< if any: holds all nodes, and only jobs that name it get them
  /// Whether Slurm sets CUDA_VISIBLE_DEVICES for what it starts, as most clusters have it, or
  /// leaves it to job scripts, as some do.
  bool sets_visible_gpus = true;
  std::string interface_suffix{};     ///< if any: n1 is reached as n1<interface_suffix> too
  size_t first_job = 1;               ///< the number of its first job
  std::chrono::seconds patience{60};  ///< how long the daemons may take to be ready
};

}  // namespace checker
