#include "tasks/recorded.hpp"

#include "evidence.hpp"
#include "phases.hpp"

namespace tasks {

void record_step(const torch::optim::Optimizer& optimizer) {
  std::vector<at::Tensor> parameters;
  for (const auto& group : optimizer.param_groups()) {
    parameters.insert(parameters.end(), group.params().begin(), group.params().end());
  }
  using namespace distributed_utils;
  recording::record(recording::Kind::values, values_payload(parameters));
  recording::record(recording::Kind::gradients, gradients_payload(parameters));
}

TimedStep::TimedStep(const torch::optim::Optimizer& optimizer) {
  phases::optimizer_begins(optimizer);
}

TimedStep::~TimedStep() { phases::optimizer_ends(); }

}  // namespace tasks
