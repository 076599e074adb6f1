#pragma once
/// AdamW that first shortens gradients which are too long.
#include <torch/types.h>

#include <vector>

#include "operators/adamw.hpp"

namespace tasks::summaries {

/// Multiplies all gradients by the one factor that makes their common 2-norm `longest`, if it is
/// more: Python's torch.nn.utils.clip_grad_norm_, without its wait for the device.
void clip_gradients(const std::vector<torch::Tensor>& gradients, double longest);

/// A step on gradients as clip_gradients() leaves them, which thereby are what .grad() holds. Ranks
/// must hold whole gradients, already averaged: then they clip alike. Where a rank holds a piece of
/// them, its norm is that of the piece.
class ClippedAdamW : public operators::FusedAdamW {
 public:
  /// longest: 0 leaves gradients as they are.
  ClippedAdamW(std::vector<torch::Tensor> parameters, torch::optim::AdamWOptions defaults,
               double longest)
      : FusedAdamW(std::move(parameters), std::move(defaults)), longest_(longest) {}

  torch::Tensor step(LossClosure closure = nullptr) override;

 private:
  void clip();

  double longest_;
};

}  // namespace tasks::summaries
