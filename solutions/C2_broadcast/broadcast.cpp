// Solution of exercise C2: From one to all.
//
// Each rank has its own numbers. At the end all ranks must have rank 0's, just as all ranks start
// training from the same parameters.
//
// Run it: ./workbook run c2 --world 3 --solution
// Made by ./workbook render from checker/chapters/collectives/broadcast.cpp.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  setup({.device = torch::kCPU});
  auto numbers = my_numbers(4);

  // TODO C2: all ranks have the numbers of rank 0.
  broadcast(numbers, 0);

  show("numbers", numbers);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
