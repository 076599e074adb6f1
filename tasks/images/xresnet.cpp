#include "xresnet.hpp"

#include <torch/nn/init.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/functional.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include <typeinfo>

#include "operators/batch_norm.hpp"
#include "operators/pools.hpp"
#include "tasks/autocast.hpp"

namespace tasks::images {
namespace {

namespace nn = torch::nn;

enum class Last { activation, norm, zero_norm };

// A module with what BatchNorm2d does, and nothing beside it.
const nn::BatchNorm2dImpl* plain_norm(const nn::Module& module) {
  const auto* norm = module.as<nn::BatchNorm2dImpl>();
  return norm != nullptr && typeid(*norm) == typeid(nn::BatchNorm2dImpl) ? norm : nullptr;
}

// Convolution, normalisation and, unless a sum comes first, ReLU.
class ConvolutionImpl : public StackImpl {
 public:
  ConvolutionImpl(int64_t in, int64_t out, int64_t size, int64_t stride, Last last, bool fused)
      : fused_(fused) {
    const auto options =
        nn::Conv2dOptions(in, out, size).stride(stride).padding(size / 2).bias(false);
    nn::BatchNorm2d norm(out);
    nn::init::constant_(norm->weight, last == Last::zero_norm ? 0 : 1);
    push_back(nn::Conv2d(options));
    push_back(norm);
    if (last == Last::activation) push_back(nn::ReLU());
  }

  torch::Tensor forward(const torch::Tensor& input) {
    if (has_fused_parts()) return fused(input, {}, size() > 2);
    return StackImpl::forward(input);
  }

  // relu(forward(input) + added), of one that has no ReLU itself.
  torch::Tensor forward_and_add(const torch::Tensor& input, const torch::Tensor& added) {
    if (has_fused_parts()) return fused(input, added, true);
    return (StackImpl::forward(input) + added).relu_();
  }

 private:
  // The norm may have become one of another kind: see convert_sync_batchnorm().
  bool has_fused_parts() const {
    const auto* norm = fused_ ? plain_norm(*ptr(1)) : nullptr;
    return norm != nullptr && norm->is_training() && norm->options.momentum().has_value();
  }

  torch::Tensor fused(const torch::Tensor& input, const torch::Tensor& added, bool relu) const {
    const auto& norm = *plain_norm(*ptr(1));
    return operators::batch_norm(ptr(0)->as<nn::Conv2dImpl>()->forward(input), added,
                                 {.weight = norm.weight,
                                  .bias = norm.bias,
                                  .running_mean = norm.running_mean,
                                  .running_var = norm.running_var,
                                  .num_batches_tracked = norm.num_batches_tracked,
                                  .momentum = *norm.options.momentum(),
                                  .epsilon = norm.options.eps()},
                                 relu);
  }

  bool fused_;
};
TORCH_MODULE(Convolution);

// A block begins as the identity: the weights of its last normalisation are zero.
class ResidualBlock : public distributed_utils::Block {
 public:
  ResidualBlock(int64_t in, int64_t inner, int64_t out, int64_t stride,
                const XResNetOptions& options) {
    const bool fused = options.fused_norm;
    if (options.bottleneck) {
      path_->push_back(Convolution(in, inner, 1, 1, Last::activation, fused));
      path_->push_back(Convolution(inner, inner, 3, stride, Last::activation, fused));
      path_->push_back(Convolution(inner, out, 1, 1, Last::zero_norm, fused));
    } else {
      path_->push_back(Convolution(in, inner, 3, stride, Last::activation, fused));
      path_->push_back(Convolution(inner, out, 3, 1, Last::zero_norm, fused));
    }
    // Pooling before the 1x1 convolution, so that no pixel is passed over.
    if (stride == 2 && options.fused_pools) {
      identity_->push_back(nn::Functional(operators::average_pool));
    } else if (stride != 1) {
      identity_->push_back(nn::AvgPool2d(nn::AvgPool2dOptions(stride).ceil_mode(true)));
    }
    if (in != out) identity_->push_back(Convolution(in, out, 1, 1, Last::norm, fused));
    register_module("convpath", path_);
    register_module("idpath", identity_);
  }

  torch::Tensor forward(const torch::Tensor& input) override {
    const auto same = identity_->is_empty() ? input : identity_->forward(input);
    auto output = input;
    for (size_t i = 0; i + 1 < path_->size(); ++i) output = convolution(i).forward(output);
    return convolution(path_->size() - 1).forward_and_add(output, same);
  }

 private:
  ConvolutionImpl& convolution(size_t i) const { return *path_->ptr(i)->as<ConvolutionImpl>(); }

  Stack path_, identity_;
};

// Calls its blocks with their hooks, which a Sequential passes by.
class StageImpl : public StackImpl {
 public:
  torch::Tensor forward(const torch::Tensor& input) {
    auto output = input;
    for (const auto& block : children()) output = (*block->as<ResidualBlock>())(output);
    return output;
  }
};
TORCH_MODULE(Stage);

Stage stage(int64_t in, int64_t inner, int64_t out, int64_t blocks, int64_t stride,
            const XResNetOptions& options) {
  Stage stage;
  for (int64_t i = 0; i < blocks; ++i) {
    stage->push_back(std::make_shared<ResidualBlock>(i == 0 ? in : out, inner, out,
                                                     i == 0 ? stride : 1, options));
  }
  return stage;
}

// Fastai's init_cnn: He's normal weights, and biases of zero.
void initialise(nn::Module& model) {
  for (const auto& module : model.modules(/*include_self=*/false)) {
    if (auto* convolution = module->as<nn::Conv2dImpl>()) {
      nn::init::kaiming_normal_(convolution->weight);
    } else if (auto* linear = module->as<nn::LinearImpl>()) {
      nn::init::kaiming_normal_(linear->weight);
      nn::init::constant_(linear->bias, 0);
    }
  }
}

void lay_out_channels_last(nn::Module& model) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model.parameters()) {
    if (parameter.dim() == 4) {
      parameter.set_data(parameter.contiguous(at::MemoryFormat::ChannelsLast));
    }
  }
}

}  // namespace

XResNet::XResNet(const XResNetOptions& options) : products_(options.products) {
  const int64_t width = options.width, expansion = options.bottleneck ? 4 : 1;
  const auto stem = [&](int64_t in, int64_t out, int64_t stride) {
    return Convolution(in, out, 3, stride, Last::activation, options.fused_norm);
  };
  layers_->push_back(stem(3, width / 2, 2));
  layers_->push_back(stem(width / 2, width / 2, 1));
  layers_->push_back(stem(width / 2, width, 1));
  if (options.fused_pools) {
    layers_->push_back(nn::Functional(operators::max_pool));
  } else {
    layers_->push_back(nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)));
  }
  int64_t in = width;
  for (size_t i = 0; i < options.layers.size(); ++i) {
    const int64_t inner = width << i;
    layers_->push_back(
        stage(in, inner, inner * expansion, options.layers[i], i == 0 ? 1 : 2, options));
    in = inner * expansion;
  }
  layers_->push_back(nn::AdaptiveAvgPool2d(1));
  layers_->push_back(nn::Flatten());
  // Fastai has a dropout of nothing here, which counts in its names.
  layers_->push_back(nn::Identity());
  layers_->push_back(nn::Linear(in, options.classes));
  for (const auto& module : layers_->modules(/*include_self=*/false)) {
    if (auto block = std::dynamic_pointer_cast<distributed_utils::Block>(module)) {
      blocks_.push_back(std::move(block));
    }
  }
  // Its children are the model's own, so that no name has a prefix.
  for (const auto& layer : layers_->named_children()) register_module(layer.key(), layer.value());
  initialise(*this);
  if (options.channels_last) lay_out_channels_last(*this);
}

torch::Tensor XResNet::compute(const Input& input) {
  const torch::Tensor& pictures = input;
  const Autocast autocast(pictures.device().type(), products_);
  return layers_->forward(pictures);
}

}  // namespace tasks::images
