// Exercise C5: Every rank has everything.
//
// Each rank has its own numbers. At the end each rank has the numbers of all ranks, side by side
// and in rank order. Nothing adds them up.
//
// Run it: ./workbook run c5 --world 3
// Made by ./workbook render from checker/chapters/collectives/all_gather.cpp; it is yours now.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  setup({.device = torch::kCPU});
  const auto numbers = my_numbers(4);

  // TODO C5: Collect the numbers of all ranks.
  //   On every rank, make all a tensor of shape [world size, 4]. Row r holds the numbers of rank r.
  //
  //   One collective stacks the tensors of all ranks in rank order.
  //
  //   Expect all ranks to show the same numbers: those of rank 0 first, then those of rank 1, and
  //   so on.
  const auto all = numbers.unsqueeze(0);

  show("all", all);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
