// Exercise C4: From all to all.
//
// Each rank has its own numbers, and all ranks need their mean. Data parallel training averages
// gradients like this.
//
// Run it: ./workbook run c4 --world 3
// Made by ./workbook render from checker/chapters/collectives/all_reduce.cpp; it is yours now.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  setup({.device = torch::kCPU});
  auto mean = my_numbers(4);

  // TODO C4: Average over all ranks.
  //   On every rank, make mean the mean of all ranks' numbers, element by element.
  //
  //   One collective reduces the tensors of all ranks and gives the result to all of them, in
  //   place. Do not use all_gather: with a thousand ranks, no rank has the memory for all numbers.
  //
  //   Expect all ranks to show the same mean, at any world size.

  show("mean", mean);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
