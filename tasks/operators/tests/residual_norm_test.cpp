// Against torch's own operators in double precision on CPUs.
#include "operators/residual_norm.hpp"

#include "devices.hpp"

namespace tasks::operators {
namespace {

class ResidualNormTest : public OnDevice {
 protected:
  struct Case {
    torch::Tensor residual, added, weight, bias, scale;
  };

  static Case make_case(int64_t rows, int64_t width) {
    return {torch::randn({rows, width}), torch::randn({rows, width}), torch::randn({width}),
            torch::randn({width}), torch::randn({rows, width})};
  }

  /// The output and the gradients of `scale` times it.
  std::vector<torch::Tensor> ours(const Case& c, torch::Dtype type, double dropout) const {
    const std::vector<torch::Tensor> leaves{leaf(c.residual, torch::kFloat), leaf(c.added, type),
                                            leaf(c.weight, torch::kFloat),
                                            leaf(c.bias, torch::kFloat)};
    const auto [output, narrow] =
        residual_norm(leaves[0], leaves[1], leaves[2], leaves[3], dropout);
    EXPECT_EQ(narrow.dtype(), type);
    EXPECT_TRUE(torch::equal(narrow, output.to(type)));
    output.backward(c.scale.to(GetParam()));
    std::vector<torch::Tensor> all{output.detach()};
    for (const auto& tensor : leaves) all.push_back(tensor.grad());
    return all;
  }

  /// factor: what `added` is multiplied by.
  static std::vector<torch::Tensor> wanted(const Case& c, torch::Dtype type,
                                           const torch::Tensor& factor) {
    std::vector<torch::Tensor> leaves;
    for (const auto& tensor : {c.residual, c.added.to(type), c.weight, c.bias}) {
      leaves.push_back(tensor.to(torch::kDouble).clone().requires_grad_());
    }
    const auto sum = leaves[0] + leaves[1] * factor;
    const auto output = at::layer_norm(sum, {sum.size(-1)}, leaves[2], leaves[3]);
    output.backward(c.scale.to(torch::kDouble));
    std::vector<torch::Tensor> all{output.detach()};
    for (const auto& tensor : leaves) all.push_back(tensor.grad());
    return all;
  }

  static void expect_near(const std::vector<torch::Tensor>& all,
                          const std::vector<torch::Tensor>& exact, torch::Dtype type) {
    const char* const names[] = {"output", "residual", "added", "weight", "bias"};
    for (size_t i = 0; i < exact.size(); ++i) {
      const double tolerance = i == 2 && type == torch::kBFloat16 ? 4e-3 : 3e-6;
      EXPECT_LE(relative_error(all[i], exact[i]), tolerance) << names[i];
    }
  }
};
WORLDSIZE_ON_DEVICES(ResidualNormTest);

TEST_P(ResidualNormTest, IsTorchsAtOddSizes) {
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    for (const int64_t width : {4, 7, 12, 128, 300, 516, 1024, 1028}) {
      for (const int64_t rows : {1, 33, 3000}) {
        SCOPED_TRACE(testing::Message() << type << " " << rows << " x " << width);
        const auto c = make_case(rows, width);
        expect_near(ours(c, type, 0), wanted(c, type, torch::ones({})), type);
      }
    }
  }
}

TEST_P(ResidualNormTest, GradientsOfBothOutputsAddUp) {
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    for (const bool both : {false, true}) {
      SCOPED_TRACE(testing::Message() << type << (both ? " both" : " the narrow one"));
      auto c = make_case(33, 12);
      const std::vector<torch::Tensor> leaves{leaf(c.residual, torch::kFloat), leaf(c.added, type),
                                              leaf(c.weight, torch::kFloat),
                                              leaf(c.bias, torch::kFloat)};
      const auto [output, narrow] = residual_norm(leaves[0], leaves[1], leaves[2], leaves[3], 0);
      const auto of_narrow = torch::randn({33, 12}).to(type);
      auto sum = (narrow * of_narrow.to(GetParam())).to(torch::kFloat).sum();
      if (both) sum = sum + (output * c.scale.to(GetParam())).sum();
      sum.backward();
      c.scale = of_narrow.to(torch::kFloat) + (both ? c.scale : torch::zeros({}));
      auto all = std::vector{output.detach()};
      for (const auto& tensor : leaves) all.push_back(tensor.grad());
      expect_near(all, wanted(c, type, torch::ones({})), type);
    }
  }
}

// Both the sum and its norm go on, so the summands' gradient is that of both.
TEST_P(ResidualNormTest, GivesTheSumAndItsNorm) {
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    for (const bool with_sum : {true, false}) {
      SCOPED_TRACE(testing::Message() << type << (with_sum ? " both" : " the norm alone"));
      auto c = make_case(33, 12);
      c.scale = c.scale.to(torch::kBFloat16).to(torch::kFloat);  // a gradient that bf16 holds
      const auto run = [&](std::vector<torch::Tensor> leaves, auto device, auto compute) {
        const auto [sum, normed] = compute(leaves);
        auto loss = (normed.to(sum.dtype()) * c.scale.to(device, sum.scalar_type())).sum();
        if (with_sum) loss = loss + (sum * sum).sum();
        loss.backward();
        std::vector<torch::Tensor> all{sum.detach(), normed.detach()};
        for (const auto& leaf : leaves) all.push_back(leaf.grad());
        return all;
      };
      const auto ours = run({leaf(c.residual, torch::kFloat), leaf(c.added, type),
                             leaf(c.weight, torch::kFloat), leaf(c.bias, torch::kFloat)},
                            GetParam(), [](const auto& l) {
                              const auto [sum, normed] = sum_norm(l[0], l[1], l[2], l[3]);
                              return std::pair(sum, normed);
                            });
      std::vector<torch::Tensor> exact;
      for (const auto& tensor : {c.residual, c.added.to(type), c.weight, c.bias}) {
        exact.push_back(tensor.to(torch::kDouble).clone().requires_grad_());
      }
      const auto wanted = run(exact, torch::kCPU, [](const auto& l) {
        const auto sum = l[0] + l[1];
        return std::pair(sum, at::layer_norm(sum, {sum.size(-1)}, l[2], l[3]));
      });
      EXPECT_EQ(ours[1].scalar_type(), type);
      for (size_t i = 0; i < wanted.size(); ++i) {
        const bool rounded = type == torch::kBFloat16 && (i == 1 || i == 3);
        EXPECT_LE(relative_error(ours[i], wanted[i]), rounded ? 4e-3 : 3e-6) << i;
      }
    }
  }
}

TEST_P(ResidualNormTest, NormsAlsoWithoutAnythingAdded) {
  for (const int64_t width : {4, 7, 128, 516, 1028}) {
    SCOPED_TRACE(width);
    auto c = make_case(300, width);
    c.added.zero_();
    const auto exact = wanted(c, torch::kFloat, torch::ones({}));
    const auto input = leaf(c.residual, torch::kFloat), weight = leaf(c.weight, torch::kFloat),
               bias = leaf(c.bias, torch::kFloat);
    const auto output = layer_norm(input, weight, bias);
    output.backward(c.scale.to(GetParam()));
    EXPECT_LE(relative_error(output.detach(), exact[0]), 3e-6);
    EXPECT_LE(relative_error(input.grad(), exact[1]), 3e-6);
    EXPECT_LE(relative_error(weight.grad(), exact[3]), 3e-6);
    EXPECT_LE(relative_error(bias.grad(), exact[4]), 3e-6);
    EXPECT_TRUE(torch::equal(input.detach().cpu(), c.residual));
  }
}

TEST_P(ResidualNormTest, TakesNoRows) {
  const auto c = make_case(0, 8);
  for (const auto& tensor : ours(c, torch::kFloat, 0.5)) {
    EXPECT_EQ(tensor.abs().sum().item<float>(), 0);
  }
}

TEST_P(ResidualNormTest, DropsTheSameForwardAndBackward) {
  const auto c = make_case(500, 64);
  const double dropout = 0.3;
  const auto all = ours(c, torch::kFloat, dropout);
  const auto kept = all[2].ne(0).to(torch::kCPU, torch::kDouble);
  expect_near(all, wanted(c, torch::kFloat, kept / (1 - dropout)), torch::kFloat);
  // Five standard deviations of 32,000 throws.
  EXPECT_NEAR(kept.mean().item<double>(), 1 - dropout, 5 * std::sqrt(0.3 * 0.7 / 32000));
  EXPECT_FALSE(torch::equal(ours(c, torch::kFloat, dropout)[0], all[0]));  // and then others
}

TEST_P(ResidualNormTest, GivesTheSameBitsEveryTime) {
  const auto c = make_case(4096, 128);
  torch::manual_seed(3);
  const auto first = ours(c, torch::kFloat, 0.1);
  torch::manual_seed(3);
  const auto second = ours(c, torch::kFloat, 0.1);
  for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(torch::equal(first[i], second[i])) << i;
}

}  // namespace
}  // namespace tasks::operators
