// Exercise C4: From all to all.

#include <torch/torch.h>

#include <deque>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

// The mean is the sum of the shares, so each rank makes its share small before it gives it away.
std::deque<Work> begin_mean(const torch::Tensor& numbers) {
  numbers.mul_(1.0 / get_world_size());
  std::deque<Work> under_way;
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    under_way.push_back(all_reduce_async(numbers.narrow(0, i, 1), ReduceOp::SUM));
  }
  return under_way;
}

}  // namespace

int main() try {
  setup({.device = torch::kCPU});
  auto mean = my_numbers(4);
  auto under_way = begin_mean(mean);
  print0("{} sums are under way", under_way.size());
  for (; !under_way.empty(); under_way.pop_back()) under_way.back().wait();
  show("mean", mean);
  destroy_process_group();
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
