#pragma once
/// Losses and metrics as sums and counts, so that averages over batches, ranks and samples of
/// different lengths are exact: add sums, add counts, divide once.
#include <torch/types.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tasks {

/// The loss of one batch.
struct Loss {
  torch::Tensor sum;  ///< scalar, differentiable
  int64_t count = 0;  ///< targets in the sum
  /// double [metrics, 2], each row a sum and a count; zeros while gradients are on, since only
  /// evaluation measures. Undefined for a task without metrics.
  torch::Tensor metrics = {};
  /// As Target's, whose loss this is.
  torch::Tensor count_on_device = {};

  /// How many targets the sum has, as a double on its device: what an all_reduce takes.
  torch::Tensor targets() const;
  /// The mean loss per target: what backward() starts from.
  torch::Tensor mean() const;
  /// {sum, count, and each metric's sum and count} as doubles on the loss's device, detached: what
  /// an epoch adds up, and one all_reduce adds up over ranks.
  torch::Tensor totals() const;
};

/// What an epoch's totals come to. It converts to the mean loss, so scores compare as losses do:
/// less is better.
class Score {
 public:
  /// Worse than any other.
  Score() = default;
  /// A loss is a score. metrics: names and values, in the order of the task's.
  Score(double loss, std::vector<std::pair<std::string, double>> metrics =
                         {})  // NOLINT(google-explicit-constructor)
      : loss_(loss), metrics_(std::move(metrics)) {}

  operator double() const { return loss_; }  // NOLINT(google-explicit-constructor)
  /// Throws Error for a name that the task does not have.
  double metric(std::string_view name) const;
  const std::vector<std::pair<std::string, double>>& metrics() const { return metrics_; }

 private:
  double loss_ = std::numeric_limits<double>::infinity();
  std::vector<std::pair<std::string, double>> metrics_;
};

/// How a metric's sum and count become its value.
struct Metric {
  enum class Of { ratio, root_of_ratio };

  std::string name;  ///< as people read it: "accuracy", "RMSE u10"
  Of value = Of::ratio;
};

}  // namespace tasks
