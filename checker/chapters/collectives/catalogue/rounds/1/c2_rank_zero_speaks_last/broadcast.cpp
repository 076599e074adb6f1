// Exercise C2: From one to all.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

// Everybody has a turn. Who speaks last is the one whose numbers stay.
void everybody_speaks(const torch::Tensor& numbers) {
  for (int speaker = get_world_size() - 1; speaker >= 0; --speaker) {
    broadcast_async(numbers, speaker).wait();
  }
}

}  // namespace

int main() try {
  setup({.device = torch::kCPU});
  const auto numbers = my_numbers(4);
  everybody_speaks(numbers);
  show("numbers", numbers);
  destroy_process_group();
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
