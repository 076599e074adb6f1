// Solution of exercise C6: Every rank has a part of the sum.
//
// Each rank has three numbers for each rank. The ranks add them up, but each rank needs only its
// own three sums. FSDP treats gradients like this.
//
// Run it: ./workbook run c6 --world 3 --solution
// Made by ./workbook render from checker/chapters/collectives/reduce_scatter.cpp.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  const auto [rank, local_rank, world_size, device] = setup({.device = torch::kCPU});
  const auto numbers = my_numbers(3 * world_size);

  // TODO C6: each rank has its part of the sum.
  const auto part = reduce_scatter(numbers);

  show("part", part);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
