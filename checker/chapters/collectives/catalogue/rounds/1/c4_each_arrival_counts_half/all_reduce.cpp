// Exercise C4: From all to all.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

// The numbers of one rank after the other, so that nobody needs the memory for all of them.
class RunningMean {
 public:
  void add(const torch::Tensor& numbers) {
    mean_ = mean_.defined() ? (mean_ + numbers) / 2 : numbers;
  }
  const torch::Tensor& value() const { return mean_; }

 private:
  torch::Tensor mean_;
};

}  // namespace

int main() try {
  const auto world = setup({.device = torch::kCPU});
  const auto mine = my_numbers(4);
  RunningMean mean;
  for (int source = 0; source < world.world_size; ++source) {
    const auto theirs = mine.clone();
    broadcast(theirs, source);
    mean.add(theirs);
  }
  show("mean", mean.value());
  destroy_process_group();
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
