#pragma once
/// Block: a module with hooks before and after forward(). Python's Module.__call__ runs such hooks,
/// LibTorch's modules have none. Sharded units, pipeline stages and recomputation attach themselves
/// to Blocks.
#include <torch/nn/module.h>

#include <functional>
#include <vector>

namespace distributed_utils {

/// A module that maps one tensor to one tensor. Calling it runs its hooks.
class Block : public torch::nn::Module {
 public:
  using torch::nn::Module::Module;

  /// Runs before forward().
  using PreHook = std::function<void()>;
  /// Runs after the PreHooks. Gets forward()'s input, or the previous hook's result, and returns a
  /// replacement.
  using InputHook = std::function<torch::Tensor(torch::Tensor input)>;
  /// Gets forward()'s output, or the previous hook's result, and returns a replacement.
  using Hook = std::function<torch::Tensor(torch::Tensor output)>;

  virtual torch::Tensor forward(const torch::Tensor& input) = 0;

  /// Runs the hooks and forward() between them. Calling forward() directly skips the hooks.
  torch::Tensor operator()(const torch::Tensor& input);

  /// Hooks run in the order of registration, in all later calls. If a hook registers another one,
  /// that one runs from the next call on. Throws Error for an empty hook.
  void register_forward_pre_hook(PreHook hook);
  void register_forward_input_hook(InputHook hook);
  void register_forward_hook(Hook hook);

 private:
  std::vector<PreHook> pre_hooks_;
  std::vector<InputHook> input_hooks_;
  std::vector<Hook> hooks_;
};

}  // namespace distributed_utils
