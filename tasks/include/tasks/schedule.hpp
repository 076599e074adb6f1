#pragma once
/// Learning rates that change from step to step, as torch.optim.lr_scheduler's do in Python.
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace tasks {

/// Multiplies the learning rates that an optimizer had when the schedule was made by a factor of
/// the number of steps taken. Python's LambdaLR, with what a resumed run needs. The optimizer must
/// outlive it.
class Schedule {
 public:
  /// What the learning rate is multiplied by after so many steps.
  using Factor = std::function<double(int64_t steps)>;

  /// Sets the rates of the first step. Without a factor they stay as they are.
  explicit Schedule(torch::optim::Optimizer& optimizer, Factor factor = {});

  /// To be called after every optimizer step: sets the rates of the next one.
  void step() { restore(steps_ + 1); }
  int64_t steps() const { return steps_; }
  /// Goes on after so many steps, which an earlier run took.
  void restore(int64_t steps);

 private:
  torch::optim::Optimizer& optimizer_;
  Factor factor_;
  std::vector<double> rates_;  ///< before the factor, of each parameter group
  int64_t steps_ = 0;
};

/// Rises in proportion for `warm_up` steps, and falls over all `total` ones as half a cosine:
/// min((x + 1) / warm_up, (1 + cos(pi x / total)) / 2) after x steps.
Schedule::Factor cosine_with_warm_up(int64_t total, int64_t warm_up);

/// Times gamma after every so many steps: Python's StepLR, counted in steps.
Schedule::Factor step_decay(int64_t every, double gamma);

/// fastai's one-cycle schedule (fastai/callback/schedule.py, fit_one_cycle), of Smith and Topin
/// 2018, "Super-convergence", https://arxiv.org/abs/1708.07120: half a cosine up from 1 / div to 1
/// over the first `rising` of `total` steps, and half a cosine down to 1 / div_final. fastai lets
/// Adam's first beta fall and rise as well; this does not.
Schedule::Factor one_cycle(int64_t total, double rising = 0.25, double div = 25,
                           double div_final = 1e5);

}  // namespace tasks
