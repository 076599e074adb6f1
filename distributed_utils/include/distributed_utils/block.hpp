#pragma once
/// Parts of a model that others can follow: what Python's Module.__call__ adds to forward(), and
/// LibTorch's modules lack. Sharded units, pipeline stages and recomputation hook onto Blocks.
#include <torch/nn/module.h>

#include <functional>
#include <vector>

namespace distributed_utils {

/// A module of one tensor in and one out, whose calls run hooks.
class Block : public torch::nn::Module {
 public:
  using torch::nn::Module::Module;

  /// Runs before forward().
  using PreHook = std::function<void()>;
  /// Runs after those. Gets forward()'s input, or the hook's before it, and returns what takes its
  /// place.
  using InputHook = std::function<torch::Tensor(torch::Tensor input)>;
  /// Gets forward()'s output, or the hook's before it, and returns what takes its place.
  using Hook = std::function<torch::Tensor(torch::Tensor output)>;

  virtual torch::Tensor forward(const torch::Tensor& input) = 0;

  /// forward() between the hooks. Calling forward() itself passes them by.
  torch::Tensor operator()(const torch::Tensor& input);

  /// Hooks run in the order in which they were registered, in all later calls. A hook that
  /// registers another one does so for the next call. Throws Error for an empty hook.
  void register_forward_pre_hook(PreHook hook);
  void register_forward_input_hook(InputHook hook);
  void register_forward_hook(Hook hook);

 private:
  std::vector<PreHook> pre_hooks_;
  std::vector<InputHook> input_hooks_;
  std::vector<Hook> hooks_;
};

}  // namespace distributed_utils
