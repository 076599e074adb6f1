//@header
#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  const auto [rank, local_rank, world_size, device] = setup({.device = torch::kCPU});
  const auto numbers = my_numbers(3 * world_size);

  //@todo C6
#if C6
  const auto part = reduce_scatter(numbers);  //@reduce_scatter
#else
  const auto part = numbers.slice(0, 3 * rank, 3 * (rank + 1));
#endif

  show("part", part);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
