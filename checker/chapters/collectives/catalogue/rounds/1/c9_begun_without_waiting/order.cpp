// Exercise C9: A deadlock: two orders.

#include <torch/torch.h>

#include <vector>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

// Nobody waits until both calls are made, so nobody can be in the way of anybody.
std::vector<Work> begin(const torch::Tensor& sum, const torch::Tensor& first, bool giver) {
  std::vector<Work> works;
  if (giver) works.push_back(broadcast_async(first, 0));
  works.push_back(all_reduce_async(sum));
  if (!giver) works.push_back(broadcast_async(first, 0));
  return works;
}

}  // namespace

int main() try {
  const auto world = setup({.device = torch::kCPU});
  const auto sum = my_numbers(4), first = sum.clone();
  for (auto& work : begin(sum, first, world.rank == 0)) work.wait();
  if (world.rank == 0) show("sum", sum);
  show("numbers of rank 0", first);
  destroy_process_group();
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
