#pragma once
/// AdamW (Loshchilov and Hutter 2019, https://arxiv.org/abs/1711.05101, algorithm 2) in one kernel.
#include <torch/optim/adamw.h>

#include <memory>
#include <vector>

#include "operators/narrow_copies.hpp"
#include "tasks/step_graph.hpp"

namespace tasks::operators {

/// torch::optim::AdamW, whose step on GPUs is torch's fused kernel (torch.optim.AdamW(fused=True)
/// in Python), which C++ lacks. On CPUs it is its base class, bit for bit.
class FusedAdamW : public torch::optim::AdamW, public Replayable {
 public:
  explicit FusedAdamW(std::vector<torch::Tensor> parameters,
                      torch::optim::AdamWOptions defaults = {});

  torch::Tensor step(LossClosure closure = nullptr) override;
  void before_replay() override;
  void replayed() override;

 protected:
  /// What the kernel takes of one group; parameters without a gradient are left out.
  struct Lists {
    std::vector<at::Tensor> parameters, gradients, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps;
    /// fp32, of no dimensions, where the kernel runs; undefined: the options' holds.
    at::Tensor learning_rate;
  };
  virtual void update(const Lists& lists, const torch::optim::AdamWOptions& options);

 private:
  /// The number of the step, where the kernel reads it.
  struct Counter {
    int64_t value;
    at::Tensor on_device;  ///< fp32, of no dimensions
  };

  /// A group's learning rate, where the kernel reads it.
  struct Rate {
    double value;
    at::Tensor on_device;  ///< fp32, of no dimensions
  };

  Lists collect(size_t group);
  const at::Tensor& rate(size_t group);
  const at::Tensor& advance(int64_t step, const at::Tensor& like);

  std::vector<Counter> counters_;
  std::vector<Rate> rates_;  ///< one a group
  bool replays_ = false;     ///< graphs repeat its steps
};

/// The same by a kernel of our own, for fp32 on GPUs: it moves the fewest bytes that there are to
/// move, and writes the copies on the way, which then need no cast.
class FastAdamW : public FusedAdamW {
 public:
  /// copies: those that the model multiplies with; may be null.
  FastAdamW(std::vector<torch::Tensor> parameters, torch::optim::AdamWOptions defaults,
            std::shared_ptr<NarrowCopies> copies);

 protected:
  void update(const Lists& lists, const torch::optim::AdamWOptions& options) override;

 private:
  std::shared_ptr<NarrowCopies> copies_;
};

}  // namespace tasks::operators
