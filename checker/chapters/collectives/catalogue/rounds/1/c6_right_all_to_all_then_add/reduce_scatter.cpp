// Exercise C6: Everybody has a part of the sum.

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

// What all ranks have for this one: row r comes from rank r.
torch::Tensor letters_for_me(torch::Tensor letters) {
  auto received = torch::empty_like(letters);
  std::vector<int64_t> equal_parts;
  world_group()->alltoall_base(received, letters, equal_parts, equal_parts)->wait();
  return received;
}

}  // namespace

int main() try {
  const int ranks = setup({.device = torch::kCPU}).world_size;
  const auto letters = letters_for_me(my_numbers(3 * ranks).view({ranks, 3}));
  const auto part = letters.sum(/*dim=*/0);
  show("part", part);
  destroy_process_group();
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
