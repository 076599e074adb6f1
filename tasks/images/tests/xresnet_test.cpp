// The network is fastai's: see xresnet.py, which is another one of the same sort in Python.
#include "xresnet.hpp"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "distributed_utils/safetensors.hpp"
#include "oracle.hpp"
#include "temporary_folder.hpp"

namespace tasks::images {
namespace {

int64_t count_parameters(const Model& model) {
  int64_t count = 0;
  for (const auto& parameter : model.parameters()) count += parameter.numel();
  return count;
}

// 23,547,754 is what fastai's xresnet50(n_out=10) has.
TEST(XResNet, OfFiftyLayersHasAsManyParametersAsFastais) {
  const XResNet model(XResNetOptions{});
  EXPECT_EQ(count_parameters(model), 23'547'754);
  EXPECT_EQ(model.parameters().size(), 167);
  EXPECT_EQ(model.buffers().size(), 165);
}

TEST(XResNet, BlocksBeginAsTheIdentity) {
  const XResNet model({.width = 8, .layers = {2, 1}, .bottleneck = false});
  const auto parameters = model.named_parameters();
  EXPECT_EQ(parameters["4.1.convpath.1.1.weight"].abs().max().item<double>(), 0);
  EXPECT_EQ(parameters["5.0.idpath.1.1.weight"].min().item<double>(), 1);
}

// Copies Python's weights, which have the same names.
void load(Model& model, const distributed_utils::StateDict& python) {
  const torch::NoGradGuard no_grad;
  for (const auto& list : {model.named_parameters(), model.named_buffers()}) {
    for (const auto& item : list) {
      auto tensor = item.value();
      tensor.copy_(python.at("weight." + item.key()));
    }
  }
}

double relative_error(const torch::Tensor& value, const torch::Tensor& expected) {
  return ((value - expected).abs().max() / expected.abs().max()).item<double>();
}

void agrees_with_python(const XResNetOptions& options, const std::vector<std::string>& arguments) {
  const TemporaryFolder folder;
  const auto file = (folder.path() / "python.safetensors").string();
  std::vector<std::string> words{file};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const auto said = oracle::json("../../../tasks/images/tests/xresnet.py", words);
  if (!said) GTEST_SKIP() << oracle::kMissing;
  const auto python = distributed_utils::load_file(file);
  XResNet model(options);
  EXPECT_EQ(count_parameters(model), said->at("parameters").get<int64_t>());
  for (auto& tensor : model.parameters()) tensor.set_data(tensor.to(torch::kDouble));
  for (auto& tensor : model.buffers()) {
    if (tensor.is_floating_point()) tensor.set_data(tensor.to(torch::kDouble));
  }
  load(model, python);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto output = model.forward(python.at("pictures"));
  EXPECT_TRUE(torch::equal(output, python.at("output")))
      << "differ by " << relative_error(output, python.at("output"));
  at::cross_entropy_loss(output, python.at("labels")).backward();
  at::set_num_threads(threads);
  for (const auto& item : model.named_parameters()) {
    EXPECT_LT(relative_error(item.value().grad(), python.at("gradient." + item.key())), 1e-12)
        << item.key();
  }
  for (const auto& item : model.named_buffers()) {
    EXPECT_TRUE(torch::equal(item.value(), python.at("after." + item.key()))) << item.key();
  }
}

TEST(XResNet, AgreesWithPython) {
  agrees_with_python({.width = 8, .layers = {2, 1, 1}, .bottleneck = false},
                     {"1", "8", "33", "2", "1", "1"});
  agrees_with_python({.width = 8, .layers = {1, 2}}, {"4", "8", "32", "1", "2"});
}

// A quarter as wide, so that it takes no minute.
TEST(XResNet, OfFiftyLayersAgreesWithPython) {
  agrees_with_python({.width = 16}, {"4", "16", "64", "3", "4", "6", "3"});
}

TEST(XResNet, GivesTheSameWhereChannelsAreLast) {
  torch::manual_seed(5);
  XResNet model({.width = 8, .layers = {1, 1}});
  torch::manual_seed(5);
  XResNet other({.width = 8, .layers = {1, 1}, .channels_last = true});
  const auto pictures = torch::randn({4, 3, 32, 32});
  EXPECT_TRUE(torch::allclose(model.forward(pictures),
                              other.forward(pictures.contiguous(at::MemoryFormat::ChannelsLast)),
                              1e-4, 1e-5));
}

TEST(XResNet, MultipliesBf16CopiesOnRequest) {
  XResNet model({.width = 8, .layers = {1, 1}, .products = Products::bf16});
  EXPECT_EQ(model.forward(torch::randn({4, 3, 32, 32})).dtype(), torch::kBFloat16);
  EXPECT_EQ(model.parameters()[0].dtype(), torch::kFloat);
}

TEST(XResNet, CallsItsBlocksOneAfterTheOther) {
  XResNet model({.width = 8, .layers = {2, 1}, .bottleneck = false});
  std::vector<torch::Tensor> inputs, outputs;
  for (const auto& block : model.blocks()) {
    block->register_forward_input_hook([&](torch::Tensor tensor) {
      inputs.push_back(tensor);
      return tensor;
    });
    block->register_forward_hook([&](torch::Tensor tensor) {
      outputs.push_back(tensor);
      return tensor;
    });
  }
  model.forward(torch::rand({2, 3, 32, 32}));
  ASSERT_EQ(outputs.size(), 3U);
  EXPECT_TRUE(torch::equal(inputs[1], outputs[0]));
  EXPECT_TRUE(torch::equal(inputs[2], outputs[1]));
}

// What kernels of ours compute together, torch's operators do on CPUs: the same bits.
TEST(XResNet, GivesTheSameWithFusedParts) {
  for (const bool bottleneck : {false, true}) {
    XResNetOptions options{.width = 8, .layers = {2, 1}, .bottleneck = bottleneck};
    torch::manual_seed(5);
    XResNet model(options);
    options.fused_norm = options.fused_pools = true;
    torch::manual_seed(5);
    XResNet fused(options);
    const auto pictures = torch::randn({4, 3, 34, 34});
    const auto compare = [&] {
      const auto output = model.forward(pictures);
      EXPECT_TRUE(torch::equal(fused.forward(pictures), output));
      return output;
    };
    compare().square().sum().backward();
    fused.forward(pictures).square().sum().backward();
    model.forward(pictures);
    for (const auto& item : fused.named_parameters()) {
      const auto& wanted = model.named_parameters()[item.key()].grad();
      EXPECT_TRUE(torch::equal(item.value().grad(), wanted)) << item.key();
    }
    for (const auto& item : fused.named_buffers()) {
      EXPECT_TRUE(torch::equal(item.value(), model.named_buffers()[item.key()])) << item.key();
    }
    model.eval();
    fused.eval();
    compare();
  }
}

// A norm of another kind, which averages over ranks, keeps its own way.
TEST(XResNet, FusesNoNormsThatAreOthers) {
  struct Marked : torch::nn::BatchNorm2dImpl {
    using BatchNorm2dImpl::BatchNorm2dImpl;
    torch::Tensor forward(const torch::Tensor& input) { return input * 0 + 1; }
  };
  XResNet model({.width = 8, .layers = {1}, .fused_norm = true});
  auto& stack = *model.named_children()["2"]->as<StackImpl>();
  const auto other = std::make_shared<Marked>(8);
  *(stack.begin() + 1) = torch::nn::AnyModule(other);
  stack.replace_module("1", other);
  const auto forward = [&] { return model.forward(torch::randn({2, 3, 32, 32})); };
  EXPECT_TRUE(torch::equal(forward(), forward()));
}

}  // namespace
}  // namespace tasks::images
