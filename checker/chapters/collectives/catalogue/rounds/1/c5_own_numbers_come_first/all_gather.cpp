// Exercise C5: Everybody has everything.

#include <torch/torch.h>

#include <vector>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

struct Neighbours {
  explicit Neighbours(const World& world)
      : left((world.rank + world.world_size - 1) % world.world_size),
        right((world.rank + 1) % world.world_size) {}
  int left, right;
};

torch::Tensor from_left(const torch::Tensor& given, const Neighbours& neighbours) {
  auto came = torch::empty_like(given);
  auto sending = send_async(given, neighbours.right);
  recv(came, neighbours.left);
  sending.wait();
  return came;
}

}  // namespace

int main() try {
  const auto world = setup({.device = torch::kCPU});
  const Neighbours neighbours(world);
  std::vector<torch::Tensor> rows = {my_numbers(4)};
  while (static_cast<int>(rows.size()) < world.world_size) {
    rows.push_back(from_left(rows.back(), neighbours));
  }
  const auto all = torch::stack(rows);
  show("all", all);
  destroy_process_group();
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
