// Exercise C6: Everybody has a part of the sum.

#include <torch/torch.h>

#include <vector>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

// Each piece is added up alone, so nothing as large as the whole is ever reduced.
class Pieces {
 public:
  explicit Pieces(const torch::Tensor& numbers) : pieces_(numbers.split(3)) {
    for (const auto& piece : pieces_) under_way_.push_back(all_reduce_async(piece));
  }

  torch::Tensor sum(int owner) {
    for (auto& work : under_way_) work.wait();
    return pieces_.at(static_cast<size_t>(owner));
  }

 private:
  std::vector<torch::Tensor> pieces_;
  std::vector<Work> under_way_;
};

}  // namespace

int main() try {
  const auto world = setup({.device = torch::kCPU});
  Pieces pieces(my_numbers(3 * world.world_size));
  show("part", pieces.sum(world.rank));
  destroy_process_group();
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
