#include "distributed_utils/block.hpp"

#include <utility>

#include "distributed_utils/error.hpp"

namespace distributed_utils {

torch::Tensor Block::operator()(const torch::Tensor& input) {
  // Copies, because a hook may register others, which would move those that run.
  const auto pre_hooks = pre_hooks_;
  for (const auto& hook : pre_hooks) hook();
  const auto input_hooks = input_hooks_;
  torch::Tensor seen = input;
  for (const auto& hook : input_hooks) seen = hook(std::move(seen));
  torch::Tensor output = forward(seen);
  const auto hooks = hooks_;
  for (const auto& hook : hooks) output = hook(std::move(output));
  return output;
}

void Block::register_forward_pre_hook(PreHook hook) {
  if (!hook) throw Error("register_forward_pre_hook: the hook is empty. Fix: give a function.");
  pre_hooks_.push_back(std::move(hook));
}

void Block::register_forward_input_hook(InputHook hook) {
  if (!hook) throw Error("register_forward_input_hook: the hook is empty. Fix: give a function.");
  input_hooks_.push_back(std::move(hook));
}

void Block::register_forward_hook(Hook hook) {
  if (!hook) throw Error("register_forward_hook: the hook is empty. Fix: give a function.");
  hooks_.push_back(std::move(hook));
}

}  // namespace distributed_utils
