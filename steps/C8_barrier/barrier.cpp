// Exercise C8: Wait for each other.
//
// Rank 0 writes a file, and every rank reads it. The others are faster than rank 0: they find no
// file.
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

  // TODO C8: Wait until the file is there.
  //   Let the other ranks wait until rank 0 has written the file.
  //
  //   A collective without data does just that: it returns on every rank once all ranks have called
  //   it. Its place decides: rank 0 must come to it after it has written, the others before they
  //   read.
  //
  //   Expect all ranks to show the numbers of rank 0. Looking again and again whether the file is
  //   there is not enough: it is there before it is whole.

  show("numbers", read_numbers("numbers.txt"));
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
