// Exercise C10: A deadlock: only rank 0.
//
// Only rank 0 needs the sum, so only rank 0 asks for it. The program stalls, or ends with an error.
//
// Run it: ./workbook check c10
// Made by ./workbook render from checker/chapters/collectives/condition.cpp; it is yours now.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  const auto [rank, local_rank, world_size, device] = setup({.device = torch::kCPU});
  const auto sum = my_numbers(4);

  // TODO C10: Let all ranks take part.
  //   Repair the program, so that rank 0 shows the sum.
  //
  //   A collective needs all ranks of its group, even those that do not need the result. Only the
  //   use of the result may be inside if (rank == 0).
  //
  //   Expect rank 0 to show the sum, and all ranks to end.
  if (rank == 0) {
    all_reduce(sum);
    show("sum", sum);
  }

  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
