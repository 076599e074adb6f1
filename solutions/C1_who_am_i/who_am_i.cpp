// Solution of exercise C1: Ranks find out who they are.
//
// The same program runs several times. Each copy is a rank and finds out its number. This program
// does not ask yet.
//
// Run it: ./workbook run c1 --world 3 --solution
// Made by ./workbook render from checker/chapters/collectives/who_am_i.cpp.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  // TODO C1: every rank knows who it is.
  const auto [rank, local_rank, world_size, device] = setup({.device = torch::kCPU});

  show("rank", rank);
  show("local rank", local_rank);
  show("world size", world_size);

  // TODO C1: every rank knows who it is.
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
