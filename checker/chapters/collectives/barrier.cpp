//@header
#include <torch/torch.h>  //@include

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  const auto [rank, local_rank, world_size, device] = setup({.device = torch::kCPU});
  if (rank == 0) write_numbers("numbers.txt", my_numbers(4));  //@write

  //@todo C8
#if C8
  barrier();  //@barrier
#endif

  show("numbers", read_numbers("numbers.txt"));  //@read
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
