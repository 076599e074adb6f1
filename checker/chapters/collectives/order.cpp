//@header
#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  const auto world = setup({.device = torch::kCPU});
  const auto sum = my_numbers(4), first = sum.clone();  //@numbers

  //@todo C9
#if C9
  all_reduce(sum);  //@all_reduce
  broadcast(first, 0);  //@broadcast
#else
  if (world.rank == 0) {
    broadcast(first, 0);
    all_reduce(sum);
  } else {
    all_reduce(sum);
    broadcast(first, 0);
  }
#endif

  if (world.rank == 0) show("sum", sum);
  show("numbers of rank 0", first);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
