#pragma once
/// Optimizers whose steps leave evidence for the checker (see instrumentation/recording.hpp) and
/// times for the monitor.
#include <torch/optim/optimizer.h>

#include <utility>

namespace tasks {

/// An optimizer step, from its beginning to its end. Where the process records, the parameters
/// that the optimizer is about to change, and the gradients and learning rates with which.
class ObservedStep {
 public:
  explicit ObservedStep(const torch::optim::Optimizer& optimizer);
  ~ObservedStep();
  ObservedStep(const ObservedStep&) = delete;
  ObservedStep& operator=(const ObservedStep&) = delete;
};

/// An optimizer of torch's, Base, whose steps are observed. Every task's optimizer is one.
/// Gradients rather than parameters, because an adaptive optimizer all but hides their scale.
template <class Base>
class Recorded : public Base {
 public:
  using Base::Base;

  torch::Tensor step(typename Base::LossClosure closure = nullptr) override {
    const ObservedStep observed(*this);
    return Base::step(std::move(closure));
  }
};

}  // namespace tasks
