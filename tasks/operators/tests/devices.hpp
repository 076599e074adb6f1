#pragma once
/// Tests of operators run on CPUs, and on a GPU if there is one.
#include <gmock/gmock.h>
#include <torch/torch.h>

namespace tasks::operators {

class OnDevice : public testing::TestWithParam<torch::DeviceType> {
 protected:
  void SetUp() override {
    if (GetParam() == torch::kCUDA && !torch::cuda::is_available()) {
      GTEST_SKIP() << "LibTorch finds no usable GPU here";
    }
    torch::manual_seed(0);
  }
  /// On the device, of this type, with gradients of its own.
  torch::Tensor leaf(const torch::Tensor& values, torch::Dtype type) const {
    return values.to(GetParam(), type).clone().requires_grad_();
  }
};

/// ||value - wanted|| / ||wanted||, in double precision; NaN is no small error.
inline double relative_error(const torch::Tensor& value, const torch::Tensor& wanted) {
  const auto exact = wanted.to(torch::kCPU, torch::kDouble);
  const auto error = (value.to(torch::kCPU, torch::kDouble) - exact).norm().item<double>();
  const auto size = exact.norm().item<double>();
  return size > 0 ? error / size : error;
}

#define WORLDSIZE_ON_DEVICES(suite)                          \
  INSTANTIATE_TEST_SUITE_P(                                  \
      On, suite, testing::Values(torch::kCPU, torch::kCUDA), \
      [](const auto& test) { return std::string(test.param == torch::kCPU ? "CPU" : "GPU"); })

}  // namespace tasks::operators
