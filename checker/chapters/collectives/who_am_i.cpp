//@header
#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  //@todo C1
#if C1
  const auto [rank, local_rank, world_size, device] = setup({.device = torch::kCPU});  //@setup
#else
  const int rank = 0, local_rank = 0, world_size = 1;
#endif

  show("rank", rank);  //@rank
  show("local rank", local_rank);  //@local_rank
  show("world size", world_size);  //@world_size

  //@todo C1
#if C1
  destroy_process_group();  //@destroy
#endif
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
