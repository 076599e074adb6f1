// Against torch's own operators in double precision on CPUs.
#include "operators/pools.hpp"

#include "devices.hpp"

namespace tasks::operators {
namespace {

using Pool = torch::Tensor (*)(const torch::Tensor&);

class PoolsTest : public OnDevice {
 protected:
  /// The output and the input's gradient.
  static std::pair<torch::Tensor, torch::Tensor> run(const torch::Tensor& from,
                                                     at::MemoryFormat format, Pool pool) {
    const auto input = from.clone(format).requires_grad_();
    const auto output = pool(input);
    const auto scale = torch::arange(output.numel()).remainder(7).view(output.sizes());
    output.backward(scale.to(output.device(), output.scalar_type()));
    return {output.detach(), input.grad()};
  }

  void expect_equal(Pool ours, Pool torchs) const {
    const std::vector<std::vector<int64_t>> sizes{{2, 8, 4, 6},    {3, 16, 5, 7}, {1, 24, 1, 1},
                                                  {2, 256, 10, 9}, {2, 6, 3, 4},  {1, 512, 1, 8}};
    for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
      if (type == torch::kHalf && GetParam() == torch::kCPU) continue;
      for (const auto& size : sizes) {
        for (const auto format : {at::MemoryFormat::ChannelsLast, at::MemoryFormat::Contiguous}) {
          SCOPED_TRACE(testing::Message() << type << " " << at::IntArrayRef(size));
          // Few different values, so that some of a window are equal.
          const auto values = torch::randn(size).mul(2).round().to(type);
          const auto got = run(values.to(GetParam()), format, ours);
          const auto wanted = run(values.to(torch::kDouble), format, torchs);
          const double rounded = type == torch::kFloat ? 1e-6 : 4e-3;
          EXPECT_LE(relative_error(got.first, wanted.first), rounded);
          EXPECT_LE(relative_error(got.second, wanted.second), rounded);
        }
      }
    }
  }
};
WORLDSIZE_ON_DEVICES(PoolsTest);

TEST_P(PoolsTest, AverageIsTorchs) {
  expect_equal(average_pool, [](const torch::Tensor& input) {
    return at::avg_pool2d(input, 2, 2, 0, /*ceil_mode=*/true);
  });
}

TEST_P(PoolsTest, MaximumIsTorchs) {
  expect_equal(max_pool, [](const torch::Tensor& input) { return at::max_pool2d(input, 3, 2, 1); });
}

TEST_P(PoolsTest, NotANumberIsTheMaximum) {
  auto input = torch::randn({1, 8, 6, 6}).contiguous(at::MemoryFormat::ChannelsLast);
  input[0][3][2][2] = std::numeric_limits<float>::quiet_NaN();
  const auto output = max_pool(input.to(GetParam())).cpu();
  EXPECT_TRUE(output[0][3][1][1].isnan().item<bool>());
  EXPECT_EQ(output.isnan().sum().item<int64_t>(), 1);
}

}  // namespace
}  // namespace tasks::operators
