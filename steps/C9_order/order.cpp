// Exercise C9: A deadlock: two orders.
//
// The ranks need a sum, and the numbers of rank 0. With two or more ranks the program stalls. Run
// it, then let the checker tell you who waits where.
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

  // TODO C9: Put the calls into one order.
  //   Repair the program, so that every rank calls the same collectives in the same order.
  //
  //   Only the order matches collectives: the first call of one rank meets the first call of the
  //   others, whatever it is. Here rank 0's broadcast meets the others' all_reduce, and all ranks
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
