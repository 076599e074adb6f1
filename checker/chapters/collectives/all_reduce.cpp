//@header
#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  setup({.device = torch::kCPU});
  auto mean = my_numbers(4);  //@numbers

  //@todo C4
#if C4
  all_reduce(mean, ReduceOp::AVG);  //@all_reduce
#endif

  show("mean", mean);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
