// Exercise C4: From all to all.

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

using Whole = int64_t;

std::vector<Whole> as_whole(const torch::Tensor& numbers) {
  const auto whole = numbers.to(torch::kLong).contiguous();
  return {whole.const_data_ptr<Whole>(), whole.const_data_ptr<Whole>() + whole.numel()};
}

std::vector<Whole> mean_over_ranks(std::vector<Whole> values) {
  const auto size = static_cast<int64_t>(values.size());
  all_reduce(torch::from_blob(values.data(), {size}, torch::kLong));
  for (auto& value : values) value /= get_world_size();
  return values;
}

}  // namespace

int main() try {
  setup({.device = torch::kCPU});
  const auto values = mean_over_ranks(as_whole(my_numbers(4)));
  const auto mean = torch::tensor(values, torch::kDouble);
  show("mean", mean);
  destroy_process_group();
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
