// Solution of exercise C3: From all to one.
//
// Each rank has its own numbers. Only rank 0 needs their sum, like a rank that prints the loss.
//
// Run it: ./workbook run c3 --world 3 --solution
// Made by ./workbook render from checker/chapters/collectives/reduce.cpp.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  const auto [rank, local_rank, world_size, device] = setup({.device = torch::kCPU});
  auto sum = my_numbers(4);

  // TODO C3: rank 0 has the sum over all ranks.
  reduce(sum, 0);

  if (rank == 0) show("sum", sum);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
