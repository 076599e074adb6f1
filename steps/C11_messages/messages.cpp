// Exercise C11: A deadlock: all listen.
//
// The ranks stand in a ring. Each gives its numbers to its right neighbour and gets those of its
// left one. The program stands still.
//
// Run it: ./workbook check c11
// Made by ./workbook render from checker/chapters/collectives/messages.cpp; it is yours now.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  const auto [rank, local_rank, world_size, device] = setup({.device = torch::kCPU});
  const int right = (rank + 1) % world_size;
  const int left = (rank + world_size - 1) % world_size;
  const auto numbers = my_numbers(4);
  const auto received = torch::empty_like(numbers);

  // TODO C11: Let somebody speak.
  //   Repair the program, so that every rank gets the numbers of its left neighbour.
  //
  //   recv returns once the numbers have come. Here every rank waits for its left neighbour before
  //   it sends itself, so nobody ever sends. Turned around, with send first, it depends: send may
  //   wait until the receiver takes the numbers.
  //
  //   Expect each rank to show the numbers of its left neighbour, at any world size from 2.
  recv(received, left);
  send(numbers, right);

  show("numbers of the left neighbour", received);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
