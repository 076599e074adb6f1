//@header
#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  const auto [rank, local_rank, world_size, device] = setup({.device = torch::kCPU});
  const auto sum = my_numbers(4);

  //@todo C10
#if C10
  all_reduce(sum);  //@all_reduce
  if (rank == 0) show("sum", sum);  //@show
#else
  if (rank == 0) {
    all_reduce(sum);
    show("sum", sum);
  }
#endif

  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
