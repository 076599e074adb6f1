// Exercise C8: Wait for each other.

#include <torch/torch.h>

#include <numeric>
#include <optional>
#include <vector>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

// All ranks but the one that writes.
std::optional<Group> make_readers(int world_size) {
  if (world_size == 1) return std::nullopt;
  std::vector<int> ranks(static_cast<size_t>(world_size - 1));
  std::iota(ranks.begin(), ranks.end(), 1);
  return new_group(ranks);
}

}  // namespace

int main() try {
  const auto [rank, local_rank, world_size, device] = setup({.device = torch::kCPU});
  const auto readers = make_readers(world_size);
  if (readers) {
    barrier(*readers);
  } else {
    write_numbers("numbers.txt", my_numbers(4));
  }
  show("numbers", read_numbers("numbers.txt"));
  destroy_process_group();
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
