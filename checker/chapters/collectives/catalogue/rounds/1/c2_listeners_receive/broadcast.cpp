// Exercise C2: From one to all.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

constexpr int kGiver = 0;

void give(const torch::Tensor& numbers) { broadcast(numbers, kGiver); }

torch::Tensor take(const torch::Tensor& shaped_like) {
  auto taken = torch::zeros_like(shaped_like);
  recv(taken, kGiver);
  return taken;
}

}  // namespace

int main() try {
  const auto world = setup({.device = torch::kCPU});
  auto numbers = my_numbers(4);
  switch (world.rank) {
    case kGiver:
      give(numbers);
      break;
    default:
      numbers = take(numbers);
  }
  show("numbers", numbers);
  destroy_process_group();
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
