// Exercise C9: A deadlock: two orders.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

struct Results {
  torch::Tensor sum, first;
};

Results communicate(const torch::Tensor& numbers) {
  Results results{.sum = numbers, .first = numbers};
  all_reduce(results.sum);
  broadcast(results.first, 0);
  return results;
}

}  // namespace

int main() try {
  const auto world = setup({.device = torch::kCPU});
  const auto [sum, first] = communicate(my_numbers(4));
  if (world.rank == 0) show("sum", sum);
  show("numbers of rank 0", first);
  destroy_process_group();
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
