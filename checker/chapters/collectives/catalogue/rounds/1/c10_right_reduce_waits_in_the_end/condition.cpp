// Exercise C10: A deadlock: only rank 0.

#include <torch/torch.h>

#include <exception>
#include <utility>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

// A sum that all ranks begin. Who needs it asks for it; who does not waits when it goes.
class Total {
 public:
  Total(torch::Tensor numbers, int owner)
      : numbers_(std::move(numbers)), work_(reduce_async(numbers_, owner, ReduceOp::SUM)) {}
  Total(const Total&) = delete;
  Total& operator=(const Total&) = delete;
  ~Total() {
    try {
      work_.wait();
    } catch (const std::exception& error) {
      report(error);
    }
  }

  torch::Tensor value() {
    work_.wait();
    return numbers_;
  }

 private:
  torch::Tensor numbers_;
  Work work_;
};

void show_total(const World& world) {
  Total total(my_numbers(4), 0);
  if (world.rank != 0) return;
  show("sum", total.value());
}

}  // namespace

int main() try {
  show_total(setup({.device = torch::kCPU}));
  destroy_process_group();
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
