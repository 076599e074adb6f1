// Exercise C10: A deadlock: only rank 0.

#include <torch/torch.h>

#include <optional>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

// A collective needs all ranks of its group: so the group has the ranks that need the result.
struct Interested {
  std::optional<Group> group = new_group({0});

  template <typename Then>
  void with_sum_of(const torch::Tensor& numbers, Then then) const {
    if (!group.has_value()) return;
    all_reduce(numbers, ReduceOp::SUM, *group);
    then(numbers);
  }
};

}  // namespace

int main() try {
  setup({.device = torch::kCPU});
  const Interested interested;
  interested.with_sum_of(my_numbers(4), [](const torch::Tensor& sum) { show("sum", sum); });
  destroy_process_group();
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
