//@header
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

  //@todo C11
#if C11
  auto sending = send_async(numbers, right);  //@send
  recv(received, left);  //@recv
  sending.wait();  //@wait
#else
  recv(received, left);
  send(numbers, right);
#endif

  show("numbers of the left neighbour", received);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
