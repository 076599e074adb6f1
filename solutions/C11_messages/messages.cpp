// Solution of exercise C11: A deadlock: all receive.
//
// The ranks form a ring. Each sends its numbers to its right neighbour and receives those of its
// left one. The program stalls.
//
// Run it: ./workbook check c11 --solution
// Made by ./workbook render from checker/chapters/collectives/messages.cpp.

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

  // TODO C11: every rank sends while it receives.
  auto sending = send_async(numbers, right);
  recv(received, left);
  sending.wait();

  show("numbers of the left neighbour", received);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
