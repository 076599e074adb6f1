// Against torch's AdamW in double precision on CPUs.
#include "operators/adamw.hpp"

#include "devices.hpp"

namespace tasks::operators {
namespace {

class AdamWTest : public OnDevice {
 protected:
  /// Odd sizes, none, and one that begins and ends within a vector of the kernel's.
  std::vector<torch::Tensor> parameters(torch::Device device, torch::Dtype type) const {
    torch::manual_seed(1);
    std::vector<torch::Tensor> all;
    for (const int64_t size : {7, 4096, 5001, 0, 1}) {
      const auto values = torch::randn({size}, torch::kDouble).to(torch::kFloat);
      all.push_back(values.to(device, type).requires_grad_());
    }
    const auto inner = torch::randn({100}, torch::kDouble).to(torch::kFloat).to(device, type);
    all.push_back(inner.narrow(0, 3, 90).requires_grad_());
    return all;
  }

  static void give_gradients(const std::vector<torch::Tensor>& parameters, int step) {
    torch::manual_seed(100 + step);
    for (auto& parameter : parameters) {
      const auto values = torch::randn(parameter.sizes(), torch::kDouble).to(torch::kFloat);
      parameter.mutable_grad() = values.to(parameter.device(), parameter.scalar_type());
    }
    if (step == 2) parameters[1].mutable_grad().reset();  // that one counts one step fewer
  }

  static torch::optim::AdamWOptions options() {
    return torch::optim::AdamWOptions(1e-2).weight_decay(0.1);
  }

  static void train(torch::optim::Optimizer& optimizer) {
    for (int step = 0; step < 6; ++step) {
      give_gradients(optimizer.param_groups()[0].params(), step);
      optimizer.step();
    }
  }

  template <class Optimizer, class... Arguments>
  void expect_torchs(torch::Dtype type, double tolerance, Arguments... arguments) {
    const auto wanted = parameters(torch::kCPU, torch::kDouble);
    torch::optim::AdamW reference(wanted, options());
    train(reference);
    const auto ours = parameters(GetParam(), type);
    Optimizer optimizer(ours, options(), arguments...);
    train(optimizer);
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_LE(relative_error(ours[i].detach(), wanted[i].detach()), tolerance) << i;
      if (i == 3) continue;  // nothing in it
      const auto& state = dynamic_cast<torch::optim::AdamWParamState&>(
          *optimizer.state().at(ours[i].unsafeGetTensorImpl()));
      EXPECT_EQ(state.step(), i == 1 ? 5 : 6);
    }
  }
};
WORLDSIZE_ON_DEVICES(AdamWTest);

TEST_P(AdamWTest, IsTorchs) {
  expect_torchs<FusedAdamW>(torch::kFloat, 1e-6);
  expect_torchs<FusedAdamW>(torch::kDouble, 1e-10);
  expect_torchs<FastAdamW>(torch::kFloat, 1e-6, nullptr);
  expect_torchs<FastAdamW>(torch::kDouble, 1e-10, nullptr);
}

TEST_P(AdamWTest, WritesTheCopiesToo) {
  for (const auto type : {torch::kBFloat16, torch::kHalf}) {
    const auto copies = std::make_shared<NarrowCopies>(type);
    const auto all = parameters(GetParam(), torch::kFloat);
    FastAdamW optimizer(all, options(), copies);
    for (int step = 3; step < 6; ++step) {
      for (const auto& parameter : all) copies->of(parameter);
      give_gradients(all, step);
      optimizer.step();
      for (const auto& parameter : all) {
        const auto wanted = parameter.detach().to(type);
        if (GetParam() == torch::kCUDA) {
          EXPECT_TRUE(torch::equal(copies->existing(parameter), wanted));
        }
        EXPECT_TRUE(torch::equal(copies->of(parameter), wanted));
      }
    }
  }
}

// What students see on laptops does not change.
TEST(AdamW, IsTorchsBitForBitOnCpus) {
  const auto run = [](auto make) {
    torch::manual_seed(0);
    const std::vector<torch::Tensor> all{torch::randn({1000}).requires_grad_()};
    auto optimizer = make(all);
    for (int step = 0; step < 5; ++step) {
      all[0].mutable_grad() = torch::randn({1000});
      optimizer.step();
    }
    return all[0].detach();
  };
  const auto wanted = run([](const auto& all) { return torch::optim::AdamW(all, 1e-2); });
  EXPECT_TRUE(torch::equal(run([](const auto& all) { return FusedAdamW(all, 1e-2); }), wanted));
  EXPECT_TRUE(
      torch::equal(run([](const auto& all) { return FastAdamW(all, 1e-2, nullptr); }), wanted));
}

}  // namespace
}  // namespace tasks::operators
