// Exercise C1: Ranks find out who they are.
//
// The same program runs several times. Each copy is a rank and finds out its number. This program
// does not ask yet.
//
// Run it: ./workbook run c1 --world 3
// Made by ./workbook render from checker/chapters/collectives/who_am_i.cpp; it is yours now.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  // TODO C1: Join the others, and leave with them.
  //   Replace the constants below by this rank's own rank, local_rank and world_size. setup() finds
  //   them.
  //
  //   setup() reads the launcher's environment variables and connects the ranks. It returns a
  //   World: rank, local_rank, world_size and device. These programs always run on CPUs, so set the
  //   option device to torch::kCPU.
  //
  //   Expect each rank to show its own rank and the same world size. The local rank counts from 0
  //   on every node. On one machine it equals the rank, so the checker simulates a second node.
  const int rank = 0, local_rank = 0, world_size = 1;

  show("rank", rank);
  show("local rank", local_rank);
  show("world size", world_size);

  // TODO C1, here too: leave the group, as the last thing in the program.
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
