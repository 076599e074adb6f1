// Solution of exercise C9: A deadlock: two orders.
//
// The ranks need a sum, and the numbers of rank 0. With two or more ranks the program stalls. Run
// it, then let the checker tell you who waits where.
//
// Run it: ./workbook check c9 --solution
// Made by ./workbook render from checker/chapters/collectives/order.cpp.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  const auto world = setup({.device = torch::kCPU});
  const auto sum = my_numbers(4), first = sum.clone();

  // TODO C9: all ranks make the same calls in the same order.
  all_reduce(sum);
  broadcast(first, 0);

  if (world.rank == 0) show("sum", sum);
  show("numbers of rank 0", first);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
