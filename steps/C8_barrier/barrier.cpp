// Exercise C8: Wait for each other.
//
// Rank 0 writes a file, and every rank reads it. The other ranks are faster than rank 0, so they
// find no file.
//
// Run it: ./workbook run c8 --world 3
// Made by ./workbook render from checker/chapters/collectives/barrier.cpp; it is yours now.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  const auto [rank, local_rank, world_size, device] = setup({.device = torch::kCPU});
  if (rank == 0) write_numbers("numbers.txt", my_numbers(4));

  // TODO C8: Wait until the file is complete.
  //   Let the other ranks wait until rank 0 has written the file.
  //
  //   A collective without data does exactly that. It returns on every rank once all ranks have
  //   called it. Its place matters: rank 0 must call it after the write, the others before they
  //   read.
  //
  //   Expect all ranks to show the numbers of rank 0. It is not enough to check again and again
  //   whether the file exists: it exists before it is complete.

  show("numbers", read_numbers("numbers.txt"));
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
