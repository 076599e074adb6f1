#pragma once
#include "tasks/task.hpp"

namespace tasks::points {

/// Input: positions [batch, 2] and kinds, int64 [batch]; returns heights [batch, 1]. It normalises
/// over the batch while it trains.
class Heights : public Model {
 public:
  Heights();

 private:
  torch::Tensor compute(const Input& input) override;

  torch::nn::Embedding kinds_;
  torch::nn::Linear hidden_;
  torch::nn::BatchNorm1d norm_;
  torch::nn::Linear output_;
};

}  // namespace tasks::points
