//@header
#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  setup({.device = torch::kCPU});
  const auto numbers = my_numbers(4);

  //@todo C5
#if C5
  const auto all = all_gather(numbers);  //@all_gather
#else
  const auto all = numbers.unsqueeze(0);
#endif

  show("all", all);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
