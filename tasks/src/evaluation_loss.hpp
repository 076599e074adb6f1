#pragma once
/// The mean loss and the metrics of an evaluation that runs, for monitoring. What is on a GPU is
/// added up there; nobody waits for it before the evaluation's end, when the trainer has waited
/// itself.
#include "tasks/task.hpp"

namespace tasks {

class EvaluationLoss {
 public:
  explicit EvaluationLoss(Split split) : split_(split) {}

  Split split() const { return split_; }
  /// metrics: the task's, if it has any.
  void add(const Loss& loss, const std::vector<Metric>& metrics);
  /// steps: of the optimizer, that came before.
  void record(uint64_t steps) const;

 private:
  Split split_;
  at::Tensor sum_;
  int64_t count_ = 0;
  std::vector<Metric> metrics_;
  at::Tensor metric_sums_;  ///< double [metrics, 2]: a sum and a count of each
};

}  // namespace tasks
