#pragma once
/// Computes losses, gradients and optimizer steps as a right program would.
#include <torch/optim/optimizer.h>

#include <memory>
#include <string_view>
#include <vector>

#include "deviation.hpp"
#include "evidence/run.hpp"
#include "tasks/task.hpp"

namespace replay {

Flat flat(const std::vector<at::Tensor>& tensors);

/// The model's parameters in the order of the record. Throws tasks::Error if they do not fit it.
std::vector<at::Tensor> ordered_parameters(tasks::Model& model,
                                           const std::vector<checker::TensorSeen>& parameters);

/// One model that computes whatever is asked for.
class Oracle {
 public:
  Oracle(const tasks::Task& task, const std::vector<checker::TensorSeen>& parameters);

  struct Result {
    double sum = 0, count = 0;
    Flat gradients;
  };

  /// False if the values do not fit the model.
  bool set(const Flat& values);
  /// Those that the model has; others are left out.
  void set_buffers(const std::vector<checker::TensorSeen>& buffers);
  /// Sum and count of the loss of these samples; with gradients, those of its mean as well.
  /// generator: the state of the generator of random numbers to begin with; empty: as it is.
  Result compute(checker::Split split, const std::vector<uint64_t>& ids, bool with_gradients,
                 std::string_view generator = {});
  /// The mean loss over a whole split.
  double mean_over(checker::Split split);
  size_t size_of(checker::Split split) const;

 private:
  const tasks::Task& task_;
  std::shared_ptr<tasks::Model> model_;
  std::vector<at::Tensor> parameters_;
};

/// Parameters of these sizes that belong to no model.
std::vector<at::Tensor> loose_parameters(const std::vector<checker::TensorSeen>& pieces);

/// One rank's optimizer, which is shown the recorded gradients.
class Stepper {
 public:
  /// total_steps: of the whole run, for the task's schedule.
  Stepper(const tasks::Task& task, std::vector<at::Tensor> parameters, int64_t total_steps);

  /// The learning rates that the next step should have.
  Flat rates() const;
  /// The parameters after a step; empty if it does not fit.
  Flat step(const checker::StepSeen& seen);

 private:
  std::vector<at::Tensor> parameters_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<tasks::Schedule> schedule_;
};

}  // namespace replay
