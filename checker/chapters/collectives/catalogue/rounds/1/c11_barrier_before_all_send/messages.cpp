// Exercise C11: A deadlock: all listen.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

int neighbour(int offset) { return (get_rank() + offset + get_world_size()) % get_world_size(); }

// Everybody is ready after the barrier, so every message has somebody who takes it.
torch::Tensor shift_right(const torch::Tensor& numbers) {
  auto received = torch::empty_like(numbers);
  barrier();
  send(numbers, neighbour(+1));
  recv(received, neighbour(-1));
  barrier();
  return received;
}

}  // namespace

int main() try {
  setup({.device = torch::kCPU});
  const auto received = shift_right(my_numbers(4));
  show("numbers of the left neighbour", received);
  destroy_process_group();
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
