// Exercise C3: From all to one.

#include <torch/torch.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

// The tensors of all ranks on the root; nothing on the others.
std::vector<torch::Tensor> gather_on(int root, const torch::Tensor& mine) {
  const Group group = world_group();
  std::vector<std::vector<torch::Tensor>> outputs;
  if (group->getRank() == root) {
    outputs.emplace_back();
    std::generate_n(std::back_inserter(outputs.front()), group->getSize(),
                    [&] { return torch::empty_like(mine); });
  }
  std::vector<torch::Tensor> inputs = {mine};
  c10d::GatherOptions options;
  options.rootRank = root;
  group->gather(outputs, inputs, options)->wait();
  return outputs.empty() ? std::vector<torch::Tensor>{} : outputs.front();
}

}  // namespace

int main() try {
  setup({.device = torch::kCPU});
  const auto gathered = gather_on(0, my_numbers(4));
  if (!gathered.empty()) show("sum", torch::stack(gathered).sum(0));
  destroy_process_group();
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
