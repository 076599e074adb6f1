// Exercise C10: A deadlock: only rank 0.

#include <torch/torch.h>

#include <optional>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

// Asks all ranks for the total. Those that do not need it only have to turn up.
std::optional<torch::Tensor> total_on(int asking, torch::Tensor numbers) {
  if (get_rank() != asking) {
    barrier();
    return std::nullopt;
  }
  all_reduce(numbers);
  return numbers;
}

}  // namespace

int main() try {
  setup({.device = torch::kCPU});
  if (const auto sum = total_on(0, my_numbers(4))) show("sum", *sum);
  destroy_process_group();
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
