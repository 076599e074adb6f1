//@header
#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  const auto [rank, local_rank, world_size, device] = setup({.device = torch::kCPU});
  auto sum = my_numbers(4);  //@numbers

  //@todo C3
#if C3
  reduce(sum, 0);  //@reduce
#endif

  if (rank == 0) show("sum", sum);  //@show
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
