// Exercise C11: A deadlock: all listen.

#include <torch/torch.h>

#include <functional>
#include <utility>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

using Step = std::function<void()>;

// In this order, or the other way round.
void in_turn(bool turned, Step first, Step second) {
  if (turned) std::swap(first, second);
  first();
  second();
}

}  // namespace

int main() try {
  const World world = setup({.device = torch::kCPU});
  const int last = world.world_size - 1;
  const int right = world.rank == last ? 0 : world.rank + 1;
  const int left = world.rank == 0 ? last : world.rank - 1;
  const auto numbers = my_numbers(4);
  auto received = torch::empty_like(numbers);
  in_turn(
      world.rank == last, [&] { send(numbers, right); }, [&] { recv(received, left); });
  show("numbers of the left neighbour", received);
  destroy_process_group();
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
