// Solution of exercise C10: A deadlock: only rank 0.
//
// Only rank 0 needs the sum, so only rank 0 asks for it. The program stalls, or ends with an error.
//
// Run it: ./workbook check c10 --solution
// Made by ./workbook render from checker/chapters/collectives/condition.cpp.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  const auto [rank, local_rank, world_size, device] = setup({.device = torch::kCPU});
  const auto sum = my_numbers(4);

  // TODO C10: all ranks take part in the sum.
  all_reduce(sum);
  if (rank == 0) show("sum", sum);

  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
