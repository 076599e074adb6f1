// Solution of exercise C5: Every rank has everything.
//
// Each rank has its own numbers. At the end each rank has the numbers of all ranks, side by side
// and in rank order. Nothing adds them up.
//
// Run it: ./workbook run c5 --world 3 --solution
// Made by ./workbook render from checker/chapters/collectives/all_gather.cpp.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  setup({.device = torch::kCPU});
  const auto numbers = my_numbers(4);

  // TODO C5: every rank has the numbers of all ranks.
  const auto all = all_gather(numbers);

  show("all", all);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
