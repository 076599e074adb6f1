// Against torch's own operators in double precision on CPUs.
#include "operators/batch_norm.hpp"

#include "devices.hpp"

namespace tasks::operators {
namespace {

class BatchNormTest : public OnDevice {
 protected:
  struct Case {
    torch::Tensor input, added, weight, bias, scale;
    bool adds, relu;
  };
  struct Results {
    torch::Tensor output, input, added, weight, bias, mean, variance, batches;
  };

  // Values and gradients that bf16 holds, far from zero in some channels.
  static Case make_case(at::IntArrayRef sizes, bool adds, bool relu) {
    const auto random = [&] { return torch::randn(sizes).to(torch::kBFloat16).to(torch::kFloat); };
    const auto channels = sizes[1];
    const auto far = torch::arange(channels).remainder(3).mul(5).view({channels, 1, 1});
    return {(random() + far).to(torch::kBFloat16).to(torch::kFloat),
            random(),
            torch::randn({channels}),
            torch::randn({channels}),
            random(),
            adds,
            relu};
  }

  template <typename Norm>
  static Results run(const Case& c, torch::Device device, torch::Dtype type, torch::Dtype wide,
                     const Norm& norm) {
    const auto leaf = [&](const torch::Tensor& values, torch::Dtype as) {
      auto made = values.to(device, as).clone();
      if (made.dim() == 4) made = made.contiguous(at::MemoryFormat::ChannelsLast);
      return made.requires_grad_();
    };
    const auto input = leaf(c.input, type), added = leaf(c.added, type),
               weight = leaf(c.weight, wide), bias = leaf(c.bias, wide);
    const auto channels = c.weight.size(0);
    const auto counts = torch::TensorOptions(device).dtype(wide);
    const BatchNormParts parts{.weight = weight,
                               .bias = bias,
                               .running_mean = torch::full({channels}, 0.5, counts),
                               .running_var = torch::full({channels}, 2.0, counts),
                               .num_batches_tracked = torch::ones({}, counts.dtype(torch::kLong)),
                               .momentum = 0.2};
    const auto output = norm(input, c.adds ? added : torch::Tensor(), parts, c.relu);
    output.backward(c.scale.to(device, output.scalar_type()));
    return {output.detach(), input.grad(),       added.grad(),      weight.grad(),
            bias.grad(),     parts.running_mean, parts.running_var, parts.num_batches_tracked};
  }

  Results ours(const Case& c, torch::Dtype type) const {
    return run(c, GetParam(), type, torch::kFloat, batch_norm);
  }

  static Results wanted(const Case& c) {
    return run(c, torch::kCPU, torch::kDouble, torch::kDouble,
               [](const auto& input, const auto& added, const BatchNormParts& p, bool relu) {
                 p.num_batches_tracked.add_(1);
                 auto output = at::batch_norm(input, p.weight, p.bias, p.running_mean,
                                              p.running_var, true, p.momentum, p.epsilon, false);
                 if (added.defined()) output = output + added;
                 return relu ? output.relu() : output;
               });
  }

  void expect_near(const Results& all, const Results& exact, torch::Dtype type) const {
    // Where ReLU has its corner, rounding decides of a few elements. Torch's operators, on CPUs,
    // round before the sum as well.
    const double rounded = type == torch::kFloat ? 3e-5 : GetParam() == torch::kCPU ? 6e-2 : 2e-2;
    EXPECT_LE(relative_error(all.output, exact.output), rounded);
    EXPECT_LE(relative_error(all.input, exact.input), rounded);
    ASSERT_EQ(all.added.defined(), exact.added.defined());
    if (exact.added.defined()) EXPECT_LE(relative_error(all.added, exact.added), rounded);
    EXPECT_LE(relative_error(all.weight, exact.weight), rounded);
    EXPECT_LE(relative_error(all.bias, exact.bias), rounded);
    EXPECT_LE(relative_error(all.mean, exact.mean), 3e-6);
    EXPECT_LE(relative_error(all.variance, exact.variance), 3e-5);
    EXPECT_EQ(all.batches.item<int64_t>(), 2);
  }
};
WORLDSIZE_ON_DEVICES(BatchNormTest);

TEST_P(BatchNormTest, IsTorchsAtOddSizes) {
  const std::vector<std::vector<int64_t>> sizes{{5, 8, 1, 1},   {3, 32, 5, 7},   {4, 24, 9, 9},
                                                {2, 64, 40, 3}, {1, 2048, 5, 5}, {3, 6, 4, 4},
                                                {8, 40, 1, 3}};
  for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    if (type == torch::kHalf && GetParam() == torch::kCPU) continue;
    for (const auto& size : sizes) {
      for (const bool adds : {false, true}) {
        for (const bool relu : {false, true}) {
          SCOPED_TRACE(testing::Message() << type << " " << at::IntArrayRef(size)
                                          << (adds ? " adds" : "") << (relu ? " relu" : ""));
          const auto c = make_case(size, adds, relu);
          expect_near(ours(c, type), wanted(c), type);
        }
      }
    }
  }
}

TEST_P(BatchNormTest, TakesGradientsAndInputsThatLieOtherwise) {
  const auto device = torch::Device(GetParam());
  const auto values = torch::randn({3, 16, 4, 5}), weight = torch::randn({16});
  const auto compute = [&](bool last) {
    const auto format = last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
    auto input = values.to(device).clone(format).requires_grad_();
    const BatchNormParts parts{.weight = weight.to(device), .bias = weight.to(device)};
    batch_norm(input, {}, parts, true).mul(values.to(device)).sum().backward();
    return input.grad();
  };
  EXPECT_LE(relative_error(compute(true), compute(false)), 3e-6);
}

TEST_P(BatchNormTest, LetsNotANumberPass) {
  auto c = make_case({2, 8, 3, 3}, false, true);
  c.input[1][2][1][1] = std::numeric_limits<float>::quiet_NaN();
  const auto output = ours(c, torch::kFloat).output;
  EXPECT_TRUE(output.select(1, 2).isnan().all().item<bool>());
  EXPECT_EQ(output.isnan().sum().item<int64_t>(), 18);
}

TEST_P(BatchNormTest, GivesTheSameBitsEveryTime) {
  const auto c = make_case({16, 64, 20, 20}, true, true);
  const auto first = ours(c, torch::kFloat), second = ours(c, torch::kFloat);
  EXPECT_TRUE(torch::equal(first.output, second.output));
  EXPECT_TRUE(torch::equal(first.input, second.input));
  EXPECT_TRUE(torch::equal(first.weight, second.weight));
}

}  // namespace
}  // namespace tasks::operators
