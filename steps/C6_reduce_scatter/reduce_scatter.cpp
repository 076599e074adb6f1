// Exercise C6: Every rank has a part of the sum.
//
// Each rank has three numbers for each rank. The ranks add them up, but each rank needs only its
// own three sums. FSDP treats gradients like this.
//
// Run it: ./workbook run c6 --world 3
// Made by ./workbook render from checker/chapters/collectives/reduce_scatter.cpp; it is yours now.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  const auto [rank, local_rank, world_size, device] = setup({.device = torch::kCPU});
  const auto numbers = my_numbers(3 * world_size);

  // TODO C6: Add up, and keep your own part.
  //   On rank r, make part the numbers 3r to 3r + 2 of the sum of all ranks' numbers.
  //
  //   One collective adds up and gives each rank its part: the first part to rank 0, the next to
  //   rank 1, and so on. Do not use all_reduce: it would send all parts to every rank, and most of
  //   them for nothing.
  //
  //   Expect each rank to show three sums, different from those of all other ranks.
  const auto part = numbers.slice(0, 3 * rank, 3 * (rank + 1));

  show("part", part);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
