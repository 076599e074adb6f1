// Exercise C2: From one to all.
//
// Each rank has its own numbers. At the end all ranks must have rank 0's, just as all ranks start
// training from the same parameters.
//
// Run it: ./workbook run c2 --world 3
// Made by ./workbook render from checker/chapters/collectives/broadcast.cpp; it is yours now.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  setup({.device = torch::kCPU});
  auto numbers = my_numbers(4);

  // TODO C2: Give rank 0's numbers to all ranks.
  //   Copy rank 0's numbers to all ranks.
  //
  //   One collective copies one rank's tensor over the tensors of all others, in place. All ranks
  //   call it, and all name the rank that sends. Rank 0 sends, the others receive.
  //
  //   Expect all ranks to show the same numbers in the end.

  show("numbers", numbers);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
