// Exercise C2: From one to all.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

// In each round, as many ranks again get the numbers as have them already.
void pass_down_the_tree(const torch::Tensor& numbers, const World& world) {
  for (int reached = 1; reached < world.world_size; reached *= 2) {
    const bool has_them = world.rank < reached;
    const int child = world.rank + reached, parent = world.rank - reached;
    if (has_them && child < world.world_size) send(numbers, child);
    if (!has_them && parent < reached) recv(numbers, parent);
  }
}

}  // namespace

int main() try {
  const World world = setup({.device = torch::kCPU});
  const torch::Tensor numbers = my_numbers(4);
  pass_down_the_tree(numbers, world);
  show("numbers", numbers);
  destroy_process_group();
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
