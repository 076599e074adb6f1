// Exercise C1: Ranks find out who they are.
//
// The same program is started several times. Each copy, a rank, finds out which one it is. This one
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
  //   Each rank must know its own rank, local_rank and world_size, in place of the constants below.
  //   setup() finds them.
  //
  //   setup() reads what the launcher left in the environment and connects the ranks. It returns a
  //   World: rank, local_rank, world_size and device. These programs run on CPUs, also where there
  //   are GPUs, so its option device must say torch::kCPU.
  //
  //   Expect each rank to show a rank of its own and the same world size. The local rank counts
  //   from 0 on every node: on one machine it equals the rank, and the checker pretends a second
  //   node.
  const int rank = 0, local_rank = 0, world_size = 1;

  show("rank", rank);
  show("local rank", local_rank);
  show("world size", world_size);

  // TODO C1, here too: leave the group, as the last thing that the program does.
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
