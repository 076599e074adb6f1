#pragma once
/// What a loader gives and a training step takes: the samples' inputs and their targets.
#include <torch/types.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace tasks {

/// What a model's forward() takes. It is one tensor for most tasks and several for some: a decoder
/// is told what came before. The first dimension of each tensor is the samples.
class Input {
 public:
  Input() = default;
  Input(torch::Tensor tensor);  // NOLINT(google-explicit-constructor): a tensor is an input
  Input(std::initializer_list<torch::Tensor> tensors) : tensors_(tensors) {}

  /// The only tensor. Throws std::logic_error if there are several, or none.
  operator const torch::Tensor&() const;  // NOLINT(google-explicit-constructor)
  /// Throws std::out_of_range.
  const torch::Tensor& operator[](size_t index) const { return tensors_.at(index); }
  const std::vector<torch::Tensor>& tensors() const { return tensors_; }

  Input to(torch::Device device) const;
  Input clone() const;

 private:
  std::vector<torch::Tensor> tensors_;
};

/// What a loss compares outputs with, and how many targets that is. The number is counted on the
/// host, where the batch is made, so that no training step waits for a GPU to count.
class Target {
 public:
  Target() = default;
  /// Every element is a target.
  Target(torch::Tensor tensor);  // NOLINT(google-explicit-constructor): a tensor is a target
  /// Only `count` of its elements are: others pad.
  Target(torch::Tensor tensor, int64_t count) : tensor_(std::move(tensor)), count_(count) {}

  operator const torch::Tensor&() const { return tensor_; }  // NOLINT(google-explicit-constructor)
  const torch::Tensor& tensor() const { return tensor_; }
  int64_t count() const { return count_; }

  /// Where a CUDA graph is captured for batches of different numbers of targets: the number as a
  /// double on the device, where the graph finds that of each batch. Then count() is 0. Elsewhere
  /// it is undefined.
  const torch::Tensor& count_on_device() const { return count_on_device_; }
  Target counted_by(torch::Tensor count_on_device) const;

  Target to(torch::Device device) const;
  Target clone() const;

 private:
  torch::Tensor tensor_;
  int64_t count_ = 0;
  torch::Tensor count_on_device_;
};

/// Memory for what a batch holds. Once batches go to a GPU, it is pinned: the GPU then copies from
/// it, and Batch::to() need not copy it before. Any thread may ask.
torch::Tensor new_tensor(at::IntArrayRef sizes, torch::Dtype type);

/// One batch of samples.
struct Batch {
  Input input;
  Target target;

  /// The batch on `device`. This is where a task learns its device.
  Batch to(torch::Device device) const;
  Batch clone() const { return {input.clone(), target.clone()}; }
};

}  // namespace tasks
