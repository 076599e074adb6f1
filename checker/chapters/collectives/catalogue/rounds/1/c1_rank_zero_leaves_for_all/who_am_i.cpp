// Exercise C1: Ranks find out who they are.

#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

void introduce(const World& world) {
  const std::vector<std::pair<std::string, int>> lines = {
      {"rank", world.rank}, {"local rank", world.local_rank}, {"world size", world.world_size}};
  for (const auto& [name, number] : lines) show(name, number);
}

// The group is one thing that all ranks share: the master opens it, and the master closes it.
void close_group(bool master) {
  if (!master) return;
  print0("everybody has spoken, closing the group of {}", get_world_size());
  destroy_process_group();
}

}  // namespace

int main() try {
  const World world = setup({.device = torch::kCPU});
  introduce(world);
  barrier();
  close_group(world.rank == 0);
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
