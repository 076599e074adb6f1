// Exercise C3: From all to one.
//
// Each rank has its own numbers. Only rank 0 needs their sum, like a rank that prints the loss.
//
// Run it: ./workbook run c3 --world 3
// Made by ./workbook render from checker/chapters/collectives/reduce.cpp; it is yours now.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  const auto [rank, local_rank, world_size, device] = setup({.device = torch::kCPU});
  auto sum = my_numbers(4);

  // TODO C3: Add up on rank 0.
  //   On rank 0, make sum the sum of all ranks' numbers.
  //
  //   Only rank 0 needs it. So do not use all_reduce and all_gather, which send the result to every
  //   rank.
  //
  //   Expect rank 0 to show the sum. The other ranks show nothing.

  if (rank == 0) show("sum", sum);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
