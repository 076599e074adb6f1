#include "distributed_utils/sync_batch_norm.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/functional/batchnorm.h>

#include <array>
#include <optional>

#include "distributed_utils/collectives.hpp"

namespace distributed_utils {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::array<int64_t, 3> kAllButChannels = {0, 2, 3};

/// Statistics of fp16 and bf16 are kept in fp32, as in torch's own batch norm.
at::ScalarType type_of_statistics(const Tensor& input) {
  return input.element_size() < 4 ? at::kFloat : input.scalar_type();
}

/// [channels] as something that fits [samples, channels, height, width].
Tensor by_channel(const Tensor& values) { return values.view({1, -1, 1, 1}); }

/// Of all ranks' inputs.
struct Statistics {
  Tensor mean, sum_of_squares;  ///< [channels]; squares of distances from the mean
  Tensor count;                 ///< [1]: values of a channel
};

/// [2 * channels + 1]: mean, sum of squares of distances from it, and count of this rank's.
Tensor statistics_here(const Tensor& input) {
  const int64_t channels = input.size(1), count = input.numel() / channels;
  const auto options = input.options().dtype(type_of_statistics(input));
  if (count == 0) return at::zeros({2 * channels + 1}, options);
  const auto [variance, mean] =
      at::var_mean(input.to(options.dtype()), kAllButChannels, /*correction=*/0);
  return at::cat({mean, variance * count, at::full({1}, count, options)});
}

/// Chan, Golub and LeVeque, Algorithms for Computing the Sample Variance, The American Statistician
/// 37 (1983), equation 2.1: no cancellation, as sums of squares would have. Every rank adds up in
/// the order of ranks and so gets the same bits.
Statistics combined(const Tensor& all, int64_t channels) {
  const Tensor means = all.narrow(1, 0, channels);
  const Tensor counts = all.narrow(1, 2 * channels, 1);
  const Tensor count = counts.sum(0);
  const Tensor mean = (means * counts).sum(0) / count;
  const Tensor between = ((means - mean).square() * counts).sum(0);
  return {mean, all.narrow(1, channels, channels).sum(0) + between, count};
}

void follow(const Tensor& running, const Tensor& value, double factor) {
  if (running.defined()) running.mul_(1 - factor).add_(value.to(running.scalar_type()), factor);
}

struct Running {
  Tensor mean, variance;  // undefined: not tracked
  double factor;
};

struct Normalize : torch::autograd::Function<Normalize> {
  static Tensor forward(AutogradContext* context, const Tensor& input,
                        const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                        const Running& running, double eps, const Group& group) {
    const auto all = all_gather(statistics_here(input), group);
    const auto [mean, squares, count] = combined(all, input.size(1));
    follow(running.mean, mean, running.factor);
    follow(running.variance, squares / (count - 1).clamp_min(1), running.factor);
    const Tensor variance = squares / count;
    context->save_for_backward(
        {input, weight.value_or(Tensor()), mean, (variance + eps).rsqrt(), count});
    context->saved_data["group"] = group;
    if (input.numel() == 0) return at::empty_like(input);
    const auto typed = [type = mean.scalar_type()](const std::optional<Tensor>& tensor) {
      return tensor ? std::optional(tensor->to(type)) : std::nullopt;
    };
    return at::batch_norm(input, typed(weight), typed(bias), mean, variance, /*training=*/false,
                          /*momentum=*/0, eps, /*cudnn_enabled=*/false);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &input = saved[0], weight = saved[1], mean = saved[2], inverse = saved[3],
                 count = saved[4];
    const int64_t channels = mean.numel();
    const Tensor gradient = gradients[0].to(mean.scalar_type());
    const Tensor distance = input.to(mean.scalar_type()) - by_channel(mean);
    const Tensor sums =
        at::cat({gradient.sum(kAllButChannels), (gradient * distance).sum(kAllButChannels)});
    variable_list results(6);
    if (weight.defined()) {
      results[1] = (sums.narrow(0, channels, channels) * inverse).to(weight.scalar_type());
      results[2] = sums.narrow(0, 0, channels).to(weight.scalar_type(), false, /*copy=*/true);
    }
    if (!context->needs_input_grad(0)) return results;
    // Every input has moved the mean and the variance that all ranks share.
    all_reduce(sums, ReduceOp::SUM,
               context->saved_data["group"].toCustomClass<c10d::ProcessGroup>());
    const Tensor means = sums / count;
    const Tensor by_mean = means.narrow(0, 0, channels);
    const Tensor by_variance = means.narrow(0, channels, channels) * inverse.square();
    const Tensor slope = weight.defined() ? inverse * weight : inverse;
    results[0] =
        ((gradient - by_channel(by_mean) - distance * by_channel(by_variance)) * by_channel(slope))
            .to(input.scalar_type());
    return results;
  }
};

}  // namespace

SyncBatchNorm2dImpl::SyncBatchNorm2dImpl(const torch::nn::BatchNorm2dImpl& from, const Group& group)
    : SyncBatchNorm2dImpl(from.options, group) {
  if (options.affine()) {
    parameters_["weight"] = weight = from.weight;
    parameters_["bias"] = bias = from.bias;
  }
  if (options.track_running_stats()) {
    running_mean.set_data(from.running_mean);
    running_var.set_data(from.running_var);
    num_batches_tracked.set_data(from.num_batches_tracked);
  }
  train(from.is_training());
}

Tensor SyncBatchNorm2dImpl::forward(const Tensor& input) {
  _check_input_dim(input);
  double factor = options.momentum().value_or(0);
  if (is_training() && num_batches_tracked.defined()) {
    num_batches_tracked += 1;
    // Without a momentum: the mean over all batches so far.
    if (!options.momentum()) factor = 1 / num_batches_tracked.item<double>();
  }
  if (!is_training() || !synchronizes_ || get_world_size(group_) == 1) {
    return torch::nn::functional::detail::batch_norm(
        input, running_mean, running_var, weight, bias,
        is_training() || !options.track_running_stats(), factor, options.eps());
  }
  const auto if_any = [](const Tensor& tensor) {
    return tensor.defined() ? std::optional(tensor) : std::nullopt;
  };
  return Normalize::apply(input, if_any(weight), if_any(bias),
                          Running{running_mean, running_var, factor}, options.eps(),
                          group_or_world(group_));
}

void SyncBatchNorm2dImpl::_check_input_dim(const Tensor& input) {
  TORCH_CHECK(input.dim() == 4, "SyncBatchNorm2d: expected 4D input (got ", input.dim(),
              "D input)");
  TORCH_CHECK(input.size(1) == options.num_features(), "SyncBatchNorm2d: expected ",
              options.num_features(), " channels (got ", input.size(1), ")");
}

void SyncBatchNorm2dImpl::pretty_print(std::ostream& stream) const {
  stream << "distributed_utils::SyncBatchNorm2d(" << options.num_features()
         << ", eps=" << options.eps() << ", momentum=";
  if (options.momentum()) {
    stream << *options.momentum();
  } else {
    stream << "None";
  }
  stream << std::boolalpha << ", affine=" << options.affine()
         << ", track_running_stats=" << options.track_running_stats()
         << ", synchronizes=" << synchronizes_ << ')';
}

}  // namespace distributed_utils
