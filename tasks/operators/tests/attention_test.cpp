// Against torch's own operators in double precision on CPUs.
#include "operators/attention.hpp"

#include "devices.hpp"

namespace tasks::operators {
namespace {

struct Case {
  int64_t batch, sequence, heads, size;

  torch::Tensor projected() const { return torch::randn({batch, sequence, 3 * heads * size}); }
  torch::Tensor scale() const { return torch::randn({batch, sequence, heads * size}); }
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.batch << " x " << c.sequence << ", " << c.heads << " heads of " << c.size;
}

class AttentionTest : public OnDevice {
 protected:
  struct Results {
    torch::Tensor output, gradient;
  };

  /// gradient: of `scale` times the output.
  Results ours(const torch::Tensor& values, const torch::Tensor& scale, int64_t heads,
               torch::Dtype type, double dropout) const {
    const auto projected = leaf(values, type);
    const auto output = fused_causal_attention(projected, heads, dropout);
    output.backward(scale.to(GetParam(), type));
    return {output.detach(), projected.grad()};
  }

  /// By its formula, in double precision. factors: what probabilities are multiplied by.
  static Results wanted(const torch::Tensor& values, const torch::Tensor& scale, const Case& c,
                        torch::Dtype type, const torch::Tensor& factors) {
    const auto projected = values.to(type).to(torch::kDouble).requires_grad_();
    const auto parts =
        projected.view({c.batch, c.sequence, 3, c.heads, c.size}).permute({2, 0, 3, 1, 4});
    const auto scores = parts[0].matmul(parts[1].transpose(-1, -2)) / std::sqrt(double(c.size));
    const auto later = torch::ones({c.sequence, c.sequence}, torch::kBool).triu(1);
    const auto output = (scores.masked_fill(later, -INFINITY).softmax(-1) * factors)
                            .matmul(parts[2])
                            .transpose(1, 2)
                            .reshape(scale.sizes());
    output.backward(scale.to(type).to(torch::kDouble));
    return {output.detach(), projected.grad()};
  }

  static void expect_near(const Results& all, const Results& exact, torch::Dtype type) {
    const double tolerance = type == torch::kBFloat16 ? 4e-3 : 2e-6;
    // Torch's own, where there is no kernel, makes products of 16 bits in between.
    const double of_gradient = type == torch::kBFloat16 ? 3 * tolerance : tolerance;
    EXPECT_LE(relative_error(all.output, exact.output), tolerance);
    EXPECT_LE(relative_error(all.gradient, exact.gradient), of_gradient);
  }
};
WORLDSIZE_ON_DEVICES(AttentionTest);

TEST_P(AttentionTest, IsItsFormula) {
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    for (const Case c :
         {Case{3, 32, 4, 32}, Case{1, 1, 1, 16}, Case{2, 5, 3, 16}, Case{2, 31, 1, 64},
          Case{70, 32, 2, 64}, Case{2, 33, 2, 32}, Case{2, 7, 2, 24}}) {
      SCOPED_TRACE(testing::Message() << type << " " << c);
      const auto values = c.projected(), scale = c.scale();
      expect_near(ours(values, scale, c.heads, type, 0),
                  wanted(values, scale, c, type, torch::ones({})), type);
    }
  }
}

// Scores of some hundreds, whose exponentials fp32 could not hold.
TEST_P(AttentionTest, KeepsLargeScores) {
  const Case c{2, 32, 2, 32};
  const auto values = 8 * c.projected(), scale = c.scale();
  const auto results = ours(values, scale, c.heads, torch::kFloat, 0);
  const auto exact = wanted(values, scale, c, torch::kFloat, torch::ones({}));
  EXPECT_LE(relative_error(results.output, exact.output), 1e-4);
  EXPECT_LE(relative_error(results.gradient, exact.gradient), 1e-4);
}

// Values are the unit matrix: what comes out are the probabilities.
TEST_P(AttentionTest, DropsTheSameForwardAndBackward) {
  const Case c{60, 32, 2, 32};
  auto values = c.projected();
  values.view({c.batch, c.sequence, 3, c.heads, c.size})
      .select(2, 2)
      .copy_(torch::eye(c.size).view({1, c.sequence, 1, c.size}));
  const auto scale = c.scale();
  const auto lower = torch::ones({c.sequence, c.sequence}).tril();
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    for (const double dropout : {0.1, 0.5}) {
      SCOPED_TRACE(testing::Message() << type << " " << dropout);
      const auto results = ours(values, scale, c.heads, type, dropout);
      const auto kept = results.output.to(torch::kCPU)
                            .view({c.batch, c.sequence, c.heads, c.size})
                            .transpose(1, 2)
                            .ne(0)
                            .to(torch::kDouble);
      EXPECT_TRUE(torch::equal(kept, kept * lower)) << "a later position was seen";
      expect_near(results, wanted(values, scale, c, type, kept / (1 - dropout)), type);
      const double count = double(c.batch * c.heads) * lower.sum().item<double>();
      EXPECT_NEAR(kept.sum().item<double>() / count, 1 - dropout,
                  5 * std::sqrt(dropout * (1 - dropout) / count));
      EXPECT_FALSE(
          torch::equal(ours(values, scale, c.heads, type, dropout).output, results.output));
    }
  }
}

TEST_P(AttentionTest, GivesTheSameBitsAgain) {
  const Case c{9, 32, 4, 32};
  const auto values = c.projected(), scale = c.scale();
  const auto seeded = [&] {
    torch::manual_seed(7);
    return ours(values, scale, c.heads, torch::kBFloat16, 0.3);
  };
  const auto first = seeded(), second = seeded();
  EXPECT_TRUE(torch::equal(first.output, second.output));
  EXPECT_TRUE(torch::equal(first.gradient, second.gradient));
}

TEST_P(AttentionTest, TakesNothing) {
  const Case c{0, 32, 2, 32};
  EXPECT_EQ(ours(c.projected(), c.scale(), c.heads, torch::kFloat, 0.5).gradient.numel(), 0);
}

}  // namespace
}  // namespace tasks::operators
