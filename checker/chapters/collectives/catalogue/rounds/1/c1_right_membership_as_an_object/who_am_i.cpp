// Exercise C1: Ranks find out who they are.

#include <torch/torch.h>

#include <map>
#include <string>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

// Joins when it is made and leaves when it goes.
class Membership {
 public:
  Membership() : world_(setup({.backend = "gloo", .device = torch::Device("cpu")})) {}
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;
  ~Membership() { destroy_process_group(); }

  std::map<std::string, int64_t> card() const {
    return {{"rank", get_rank()},
            {"world size", world_group()->getSize()},
            {"local rank", world_.local_rank}};
  }

  void roll_call() const {
    auto present = torch::zeros({get_world_size()}, torch::kInt);
    present[world_.rank] = 1;
    all_reduce(present);
    print0("present: {} of {}", present.sum().item<int>(), present.numel());
  }

 private:
  World world_;
};

}  // namespace

int main() try {
  const Membership membership;
  membership.roll_call();
  for (const auto& [name, value] : membership.card()) show(name, value);
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
