// Exercise C6: Everybody has a part of the sum.

#include <torch/torch.h>

#include <vector>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

// Puts together what belongs to one rank: every W-th number, as cards are dealt.
torch::Tensor dealt(const torch::Tensor& numbers, int64_t ranks) {
  using torch::indexing::None;
  using torch::indexing::Slice;
  std::vector<torch::Tensor> hands;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    hands.push_back(numbers.index({Slice(rank, None, ranks)}));
  }
  return torch::cat(hands);
}

}  // namespace

int main() try {
  const auto [rank, local_rank, world_size, device] = setup({.device = torch::kCPU});
  const auto numbers = my_numbers(3 * world_size);
  auto part = torch::empty({3}, numbers.options());
  reduce_scatter_async(part, dealt(numbers, world_size)).wait();
  show("part", part);
  destroy_process_group();
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
