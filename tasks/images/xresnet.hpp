#pragma once
/// The residual network of fastai (https://github.com/fastai/fastai, fastai/vision/models/
/// xresnet.py): He et al. 2018, "Bag of tricks for image classification with convolutional neural
/// networks", https://arxiv.org/abs/1812.01187, section 4, "ResNet-C" and "ResNet-D".
#include <torch/nn/modules/container/sequential.h>

#include <vector>

#include "tasks/task.hpp"

namespace tasks::images {

struct XResNetOptions {
  int64_t classes = 10;
  int64_t width = 64;                       ///< channels of the first stage, before its expansion
  std::vector<int64_t> layers{3, 4, 6, 3};  ///< blocks of each stage; each has twice the channels
  bool bottleneck = true;                   ///< blocks of 1x1, 3x3, 1x1, with 4 times the channels
  bool channels_last = false;               ///< weights lie as cuDNN's fastest kernels want them
  bool fused_norm = false;   ///< training: batch norms with the sum and the ReLU behind them
  bool fused_pools = false;  ///< pools by kernels of ours
  Products products = Products::as_stored;  ///< bf16, fp16: products of copies; weights stay fp32
};

/// A Sequential that may be part of another one, which torch's may not.
class StackImpl : public torch::nn::SequentialImpl {
 public:
  torch::Tensor forward(const torch::Tensor& input) { return SequentialImpl::forward(input); }
};
TORCH_MODULE(Stack);

/// Input: float [batch, 3, height, width]; returns logits [batch, classes]. Parameters have the
/// names that fastai gives them, so that weights go both ways.
class XResNet : public Model {
 public:
  explicit XResNet(const XResNetOptions& options);

  /// The residual blocks of all stages.
  std::vector<std::shared_ptr<distributed_utils::Block>> blocks() const override { return blocks_; }

 private:
  torch::Tensor compute(const Input& input) override;

  Products products_;
  torch::nn::Sequential layers_;
  std::vector<std::shared_ptr<distributed_utils::Block>> blocks_;
};

}  // namespace tasks::images
