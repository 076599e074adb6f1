#include "adamw.hpp"

#include <ATen/Functions.h>
#include <ATen/ops/_fused_adamw.h>

#include <algorithm>
#include <map>

#ifdef USE_CUDA
#include <c10/cuda/CUDAStream.h>

#include "kernels/kernels.hpp"
#endif

namespace tasks::operators {

using torch::optim::AdamWOptions;
using torch::optim::AdamWParamState;

FusedAdamW::FusedAdamW(std::vector<torch::Tensor> parameters, AdamWOptions defaults)
    : AdamW(std::move(parameters), std::move(defaults)) {}

namespace {

AdamWParamState& state_of(
    ska::flat_hash_map<void*, std::unique_ptr<torch::optim::OptimizerParamState>>& states,
    const at::Tensor& parameter, bool amsgrad) {
  auto& state = states[parameter.unsafeGetTensorImpl()];
  if (!state) {
    auto fresh = std::make_unique<AdamWParamState>();
    fresh->exp_avg(at::zeros_like(parameter));
    fresh->exp_avg_sq(at::zeros_like(parameter));
    if (amsgrad) fresh->max_exp_avg_sq(at::zeros_like(parameter));
    state = std::move(fresh);
  }
  return static_cast<AdamWParamState&>(*state);
}

bool on_gpus(const std::vector<torch::optim::OptimizerParamGroup>& groups) {
  for (const auto& group : groups) {
    for (const auto& parameter : group.params()) {
      if (!parameter.is_cuda()) return false;
    }
  }
  return true;
}

}  // namespace

// Parameters usually count alike and share one counter; who joins late, or was loaded, gets its
// own.
const at::Tensor& FusedAdamW::advance(int64_t step, const at::Tensor& like) {
  for (const auto& counter : counters_) {
    if (counter.value == step && counter.on_device.device() == like.device()) {
      return counter.on_device;
    }
  }
  for (auto& counter : counters_) {
    if (counter.value == step - 1 && counter.on_device.device() == like.device()) {
      counter.on_device.add_(1);
      counter.value = step;
      return counter.on_device;
    }
  }
  counters_.push_back(
      {step, at::full({}, static_cast<double>(step), like.options().dtype(at::kFloat))});
  return counters_.back().on_device;
}

// The kernel reads a number that the host writes only when it changes, so that a CUDA graph takes
// the rate of each of its replays.
const at::Tensor& FusedAdamW::rate(size_t group) {
  const auto& own = param_groups_[group];
  const double now = own.options().get_lr();
  const auto device = own.params().front().device();
  if (rates_.size() <= group) rates_.resize(group + 1);
  auto& rate = rates_[group];
  if (!rate.on_device.defined() || rate.on_device.device() != device) {
    rate = {now, at::full({}, now, at::TensorOptions(at::kFloat).device(device))};
  } else if (rate.value != now) {
    rate.on_device.fill_(now);
    rate.value = now;
  }
  return rate.on_device;
}

void FusedAdamW::before_replay() {
  const torch::NoGradGuard no_grad;
  replays_ = true;
  for (size_t i = 0; i < param_groups_.size(); ++i) {
    if (!param_groups_[i].params().empty()) rate(i);
  }
}

FusedAdamW::Lists FusedAdamW::collect(size_t number) {
  auto& group = param_groups_[number];
  const bool amsgrad = static_cast<const AdamWOptions&>(group.options()).amsgrad();
  Lists lists;
  for (const auto& parameter : group.params()) {
    if (!parameter.grad().defined()) continue;
    TORCH_CHECK(!parameter.grad().is_sparse(), "AdamW does not support sparse gradients");
    auto& state = state_of(state_, parameter, amsgrad);
    state.step(state.step() + 1);
    lists.parameters.push_back(parameter);
    lists.gradients.push_back(parameter.grad());
    lists.exp_avgs.push_back(state.exp_avg());
    lists.exp_avg_sqs.push_back(state.exp_avg_sq());
    if (amsgrad) lists.max_exp_avg_sqs.push_back(state.max_exp_avg_sq());
    lists.steps.push_back(advance(state.step(), parameter));
  }
  // The kernels read it in fp32, which is not enough for parameters in fp64.
  const bool is_double =
      !lists.parameters.empty() && lists.parameters[0].scalar_type() == at::kDouble;
  if (!lists.parameters.empty() && (replays_ || !is_double)) lists.learning_rate = rate(number);
  return lists;
}

torch::Tensor FusedAdamW::step(LossClosure closure) {
  if (!on_gpus(param_groups_)) return AdamW::step(std::move(closure));
  torch::Tensor loss;
  if (closure) {
    const at::AutoGradMode gradients(true);
    loss = closure();
  }
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < param_groups_.size(); ++i) {
    const auto& options = static_cast<const AdamWOptions&>(param_groups_[i].options());
    const Lists lists = collect(i);
    if (!lists.parameters.empty()) update(lists, options);
  }
  return loss;
}

void FusedAdamW::update(const Lists& lists, const AdamWOptions& options) {
  const auto [beta1, beta2] = options.betas();
  const auto update = [&, first = beta1, second = beta2](const auto& learning_rate) {
    at::_fused_adamw_(lists.parameters, lists.gradients, lists.exp_avgs, lists.exp_avg_sqs,
                      lists.max_exp_avg_sqs, lists.steps, learning_rate, first, second,
                      options.weight_decay(), options.eps(), options.amsgrad(), /*maximize=*/false);
  };
  if (lists.learning_rate.defined()) {
    update(lists.learning_rate);
  } else {
    update(options.lr());
  }
}

// The counters on the device have counted themselves.
void FusedAdamW::replayed() {
  for (auto& counter : counters_) ++counter.value;
  for (auto& [key, state] : state_) {
    auto& counted = static_cast<AdamWParamState&>(*state);
    counted.step(counted.step() + 1);
  }
}

FastAdamW::FastAdamW(std::vector<torch::Tensor> parameters, AdamWOptions defaults,
                     std::shared_ptr<NarrowCopies> copies)
    : FusedAdamW(std::move(parameters), std::move(defaults)), copies_(std::move(copies)) {}

#ifdef USE_CUDA
namespace {

bool is_plain(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat && tensor.is_contiguous();
}

bool are_plain(const std::vector<at::Tensor>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), is_plain);
}

}  // namespace

void FastAdamW::update(const Lists& lists, const AdamWOptions& options) {
  if (options.amsgrad() || !are_plain(lists.parameters) || !are_plain(lists.gradients)) {
    return FusedAdamW::update(lists, options);
  }
  // Those that count alike in one launch: mostly all of them.
  std::map<const float*, std::vector<kernels::AdamWParameter>> by_step;
  for (size_t i = 0; i < lists.parameters.size(); ++i) {
    const auto copy = copies_ ? copies_->existing(lists.parameters[i]) : at::Tensor();
    by_step[lists.steps[i].const_data_ptr<float>()].push_back(
        {.parameter = lists.parameters[i].mutable_data_ptr<float>(),
         .gradient = lists.gradients[i].const_data_ptr<float>(),
         .exp_avg = lists.exp_avgs[i].mutable_data_ptr<float>(),
         .exp_avg_sq = lists.exp_avg_sqs[i].mutable_data_ptr<float>(),
         .copy = copy.defined() ? copy.mutable_data_ptr() : nullptr,
         .size = lists.parameters[i].numel()});
  }
  const auto [beta1, beta2] = options.betas();
  const kernels::AdamWSettings settings{
      .learning_rate = lists.learning_rate.const_data_ptr<float>(),
      .beta1 = beta1,
      .beta2 = beta2,
      .epsilon = options.eps(),
      .weight_decay = options.weight_decay()};
  const auto device = lists.parameters.front().device().index();
  const auto type =
      copies_ && copies_->type() == at::kHalf ? kernels::Type::fp16 : kernels::Type::bf16;
  for (const auto& [step, parameters] : by_step) {
    kernels::adamw(parameters, settings, step, type, c10::cuda::getCurrentCUDAStream(device));
  }
}
#else
void FastAdamW::update(const Lists& lists, const AdamWOptions& options) {
  FusedAdamW::update(lists, options);
}
#endif

}  // namespace tasks::operators
