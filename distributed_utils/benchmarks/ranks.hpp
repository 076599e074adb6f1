#pragma once
/// Benchmarks of several ranks on this machine.
#include <c10/core/Device.h>

namespace ranks {

struct Setting {
  c10::Device device = c10::kCPU;
  int ranks = 0;
};

/// Takes --device=cpu|cuda and --ranks=N out of the arguments; without: a CPU, and `ranks`. Ends
/// the program, saying why, if there are none or more than 64.
Setting take_setting(int& argc, char** argv, int ranks);

/// Called first in main: starts this program `world_size` times as ranks that find each other
/// through a file, and returns the exit code for main once all have ended. In such a rank (or one
/// that torchrun started) it returns -1 at once. nodes: for how many NCCL is to take this machine;
/// neighbouring ranks share one.
int start(int world_size, char** argv, int nodes = 1);

/// Until a GPU has done what was enqueued.
void wait_for(c10::Device device);

/// Runs the benchmarks that are registered; only rank 0 reports. All ranks call it, with the same
/// number of iterations for each, or one would wait for the others.
void run_benchmarks(int rank);

}  // namespace ranks
