// Solution of exercise C8: Wait for each other.
//
// Rank 0 writes a file, and every rank reads it. The other ranks are faster than rank 0, so they
// find no file.
//
// Run it: ./workbook run c8 --world 3 --solution
// Made by ./workbook render from checker/chapters/collectives/barrier.cpp.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  const auto [rank, local_rank, world_size, device] = setup({.device = torch::kCPU});
  if (rank == 0) write_numbers("numbers.txt", my_numbers(4));

  // TODO C8: no rank reads before rank 0 has written.
  barrier();

  show("numbers", read_numbers("numbers.txt"));
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
