// Exercise C5: Everybody has everything.

#include <torch/torch.h>

#include <algorithm>
#include <vector>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

torch::Tensor table_of(const torch::Tensor& mine, int rank, int ranks) {
  const auto table = torch::full({ranks, mine.size(0)}, -1, mine.options());
  table.select(0, rank).copy_(mine);
  std::vector<Work> arriving;
  arriving.reserve(static_cast<size_t>(ranks));
  int source = 0;
  for (const auto& row : table.unbind(0)) arriving.emplace_back(broadcast_async(row, source++));
  std::ranges::for_each(arriving, &Work::wait);
  return table;
}

}  // namespace

int main() try {
  const auto [rank, local_rank, world_size, device] = setup({.device = torch::kCPU});
  const auto all = table_of(my_numbers(4), rank, world_size);
  print0("the largest number is {}", all.max().item<double>());
  show("all", all);
  destroy_process_group();
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
