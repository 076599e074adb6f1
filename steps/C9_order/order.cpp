// Exercise C9: A deadlock: two orders.
//
// The ranks need a sum, and the numbers of rank 0. The program stands still, with two ranks or
// more. Run it, then let the checker say who waits where.
//
// Run it: ./workbook check c9
// Made by ./workbook render from checker/chapters/collectives/order.cpp; it is yours now.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  const auto world = setup({.device = torch::kCPU});
  const auto sum = my_numbers(4), first = sum.clone();

  // TODO C9: Bring the calls into one order.
  //   Repair the program, so that every rank makes the same collectives in the same order.
  //
  //   A collective is known by its place: the first call of one rank meets the first call of the
  //   others, whatever it is. Here a broadcast of rank 0 meets an all_reduce of the others, and all
  //   wait.
  //
  //   Expect rank 0 to show the sum, and every rank the numbers of rank 0.
  if (world.rank == 0) {
    broadcast(first, 0);
    all_reduce(sum);
  } else {
    all_reduce(sum);
    broadcast(first, 0);
  }

  if (world.rank == 0) show("sum", sum);
  show("numbers of rank 0", first);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
