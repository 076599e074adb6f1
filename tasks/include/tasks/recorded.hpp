#pragma once
/// Optimizers whose steps leave evidence for the checker (see distributed_utils/recording.hpp).
#include <torch/optim/optimizer.h>

#include <utility>

#include "distributed_utils/recording.hpp"

namespace tasks {

/// Records the parameters that the optimizer is about to change and the gradients with which: the
/// bytes of each in the optimizer's order; zeros where there is no gradient.
void record_step(const torch::optim::Optimizer& optimizer);

/// Takes an optimizer step's time, where the process is monitored.
class TimedStep {
 public:
  explicit TimedStep(const torch::optim::Optimizer& optimizer);
  ~TimedStep();
  TimedStep(const TimedStep&) = delete;
  TimedStep& operator=(const TimedStep&) = delete;
};

/// An optimizer of torch's, Base, that records before it steps. Every task's optimizer is one.
/// Gradients rather than parameters, because an adaptive optimizer all but hides their scale.
template <class Base>
class Recorded : public Base {
 public:
  using Base::Base;

  torch::Tensor step(typename Base::LossClosure closure = nullptr) override {
    if (distributed_utils::recording::enabled()) record_step(*this);
    const TimedStep timed(*this);
    return Base::step(std::move(closure));
  }
};

}  // namespace tasks
