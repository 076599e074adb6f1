#pragma once
/// Optimizers whose steps leave evidence for the checker (see instrumentation/recording.hpp) and
/// times for the monitor.
#include <torch/optim/optimizer.h>

#include <optional>

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
    if (!closure) {
      const ObservedStep observed(*this);
      return Base::step();
    }
    // The closure makes the gradients, so the step begins when it has returned.
    std::optional<ObservedStep> observed;
    return Base::step([&] {
      auto loss = closure();
      if (!observed) observed.emplace(*this);
      return loss;
    });
  }
};

}  // namespace tasks
