#include "distributed_utils/gradient_hook.hpp"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

#include "distributed_utils/error.hpp"

namespace distributed_utils {
namespace {

using Hook = std::function<void(const at::Tensor&)>;

/// A tensor has room for one, so each holds the one that was there before it.
class ChainedHook : public torch::autograd::PostAccumulateGradHook {
 public:
  ChainedHook(std::unique_ptr<PostAccumulateGradHook> before, Hook hook)
      : before_(std::move(before)), hook_(std::move(hook)) {}

  void operator()(const at::Tensor& parameter) override {
    if (before_) (*before_)(parameter);
    hook_(parameter);
  }

 private:
  std::unique_ptr<PostAccumulateGradHook> before_;
  Hook hook_;
};

}  // namespace

void register_post_accumulate_grad_hook(const at::Tensor& parameter, Hook hook) {
  if (!hook) throw Error("register_post_accumulate_grad_hook: the hook is empty");
  if (!parameter.defined() || !parameter.is_leaf() || !parameter.requires_grad()) {
    throw Error(
        "register_post_accumulate_grad_hook: this tensor is not a leaf that requires a gradient. "
        "Fix: register the hook on a parameter, not on something computed from it");
  }
  auto& hooks = torch::autograd::impl::post_acc_grad_hooks(parameter);
  torch::autograd::impl::set_post_acc_grad_hooks(
      parameter, std::make_unique<ChainedHook>(std::move(hooks), std::move(hook)));
}

}  // namespace distributed_utils
