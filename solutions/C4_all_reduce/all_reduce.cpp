// Solution of exercise C4: From all to all.
//
// Each rank has its own numbers, and all ranks need their mean. Data parallel training averages
// gradients like this.
//
// Run it: ./workbook run c4 --world 3 --solution
// Made by ./workbook render from checker/chapters/collectives/all_reduce.cpp.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  setup({.device = torch::kCPU});
  auto mean = my_numbers(4);

  // TODO C4: all ranks have the mean over all ranks.
  all_reduce(mean, ReduceOp::AVG);

  show("mean", mean);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
