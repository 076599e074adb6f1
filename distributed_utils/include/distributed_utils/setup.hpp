#pragma once
/// setup() starts a distributed program. It connects the ranks and tells each one its rank, the
/// world size and its device.
#include <c10/core/Device.h>

#include <chrono>
#include <optional>
#include <string>

namespace distributed_utils {

struct SetupOptions {
  /// "nccl" or "gloo"; empty: nccl if the device is a GPU, gloo otherwise.
  std::string backend = {};
  /// Empty: the GPU of this local rank if there is one, else the CPU. "cuda" without an index: the
  /// GPU of this local rank.
  std::optional<c10::Device> device = {};
  /// How ranks find each other: "env://" (MASTER_ADDR and MASTER_PORT), "file:///path" (a file that
  /// does not exist yet, on a file system that all ranks see) or "tcp://host:port". Empty: the
  /// environment variable INIT_METHOD, else env://.
  std::string init_method = {};
  /// How long a rank waits for the others, at start and in every collective. Empty: the environment
  /// variable SETUP_TIMEOUT, in seconds, else 2 minutes. Python's default of 10 to 30 minutes is
  /// too long for learners.
  std::optional<std::chrono::milliseconds> timeout = {};
};

/// In this order for structured bindings: auto [rank, local_rank, world_size, device] = setup();
struct World {
  int rank;            ///< within the world, from 0
  int local_rank;      ///< within this node, from 0
  int world_size;      ///< number of ranks
  c10::Device device;  ///< this rank's own
};

/// Joins the process group of all ranks and makes this rank's device the current one. It reads the
/// environment variables of torchrun, Slurm's srun or Open MPI's mpirun. Without a launcher the
/// program is a world of size 1. It does not touch random generators, so a program's --seed keeps
/// its meaning. From now on SIGPIPE is ignored, unless the program handles it: a peer that has left
/// causes an error, as in Python, and does not end this rank. Throws Error if called twice, if the
/// environment contradicts itself, if this rank has no device, or if ranks are missing. It names
/// those ranks.
World setup(const SetupOptions& options = {});

}  // namespace distributed_utils
