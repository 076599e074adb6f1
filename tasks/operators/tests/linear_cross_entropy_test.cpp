// Against torch's own operators in double precision on CPUs.
#include "operators/linear_cross_entropy.hpp"

#include "devices.hpp"

namespace tasks::operators {
namespace {

class LinearCrossEntropyTest : public OnDevice {};
WORLDSIZE_ON_DEVICES(LinearCrossEntropyTest);

struct Sizes {
  int64_t rows, width, vocabulary;
};

struct Problem {
  torch::Tensor hidden, weight, bias, target;
};

Problem make_problem(const Sizes& sizes, double ignored) {
  const auto real = torch::kDouble;
  Problem problem{torch::randn({sizes.rows, sizes.width}, real),
                  torch::randn({sizes.vocabulary, sizes.width}, real),
                  torch::randn({sizes.vocabulary}, real),
                  torch::randint(sizes.vocabulary, {sizes.rows}, torch::kLong)};
  problem.target.masked_fill_(torch::rand({sizes.rows}) < ignored, -100);
  return problem;
}

/// The loss, then the gradients of 0.37 times it.
using Results = std::vector<torch::Tensor>;

Results results_of(const torch::Tensor& sum, const std::vector<torch::Tensor>& leaves) {
  Results results{sum.detach()};
  (0.37 * sum).backward();
  for (const auto& leaf : leaves) results.push_back(leaf.grad());
  return results;
}

Results by_torch(const Problem& problem, double smoothing, torch::Device device = torch::kCPU,
                 torch::Dtype type = torch::kDouble) {
  std::vector<torch::Tensor> leaves;
  for (const auto& tensor : {problem.hidden, problem.weight, problem.bias}) {
    leaves.push_back(tensor.to(device, torch::kFloat).to(torch::kDouble));
    if (type != torch::kDouble) leaves.back() = leaves.back().to(torch::kFloat);
    leaves.back().requires_grad_();
  }
  const auto cast = [&](const torch::Tensor& leaf) { return leaf.to(type); };
  const auto logits = at::linear(cast(leaves[0]), cast(leaves[1]), cast(leaves[2]));
  const auto wide = type == torch::kDouble ? logits : logits.to(torch::kFloat);
  return results_of(at::cross_entropy_loss(wide, problem.target.to(device), {}, at::Reduction::Sum,
                                           -100, smoothing),
                    leaves);
}

Results by_ours(const Problem& problem, double smoothing, torch::Device device, torch::Dtype type,
                NarrowCopies* copies = nullptr, int64_t chunk = 0) {
  std::vector<torch::Tensor> leaves;
  for (const auto& tensor : {problem.hidden, problem.weight, problem.bias}) {
    leaves.push_back(tensor.to(device, torch::kFloat).to(type).requires_grad_());
  }
  return results_of(
      linear_cross_entropy(leaves[0], leaves[1], leaves[2], problem.target.to(device),
                           {.label_smoothing = smoothing, .copies = copies, .chunk_rows = chunk}),
      leaves);
}

void expect_near(const Results& results, const Results& wanted, double tolerance) {
  const char* const names[] = {"loss", "hidden", "weight", "bias"};
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(results[i].sizes(), wanted[i].sizes());
    EXPECT_LE(relative_error(results[i], wanted[i]), tolerance) << names[i];
  }
}

TEST_P(LinearCrossEntropyTest, IsTorchsAtOddSizes) {
  for (const Sizes sizes : {Sizes{7, 5, 11}, Sizes{1, 1, 2}, Sizes{64, 16, 1000},
                            Sizes{131, 24, 2053}, Sizes{17, 8, 40008}, Sizes{300, 3, 1}}) {
    for (const double smoothing : {0.0, 0.1}) {
      for (const double ignored : {0.0, 0.3}) {
        SCOPED_TRACE(testing::Message() << sizes.rows << " " << sizes.vocabulary << " smoothing "
                                        << smoothing << " ignored " << ignored);
        const auto problem = make_problem(sizes, ignored);
        const auto wanted = by_torch(problem, smoothing);
        expect_near(by_ours(problem, smoothing, GetParam(), torch::kDouble), wanted, 1e-12);
        expect_near(by_ours(problem, smoothing, GetParam(), torch::kFloat), wanted, 2e-5);
      }
    }
  }
}

TEST_P(LinearCrossEntropyTest, IsTheSameInChunksOfAnySize) {
  const auto problem = make_problem({100, 16, 203}, 0.1);
  const auto wanted = by_torch(problem, 0.1);
  for (const int64_t chunk : {1, 33, 100, 1000}) {
    SCOPED_TRACE(chunk);
    expect_near(by_ours(problem, 0.1, GetParam(), torch::kDouble, nullptr, chunk), wanted, 1e-12);
  }
}

TEST_P(LinearCrossEntropyTest, IsNoFurtherOffIn16BitsThanTorchs) {
  for (const auto type : {torch::kBFloat16, torch::kHalf}) {
    for (const Sizes sizes :
         {Sizes{96, 64, 1000}, Sizes{96, 64, 1003}, Sizes{131, 24, 2053}, Sizes{300, 128, 264},
          Sizes{65, 72, 4104}, Sizes{1100, 128, 130}, Sizes{40, 200, 500}}) {
      for (const double smoothing : {0.0, 0.1}) {
        SCOPED_TRACE(testing::Message() << type << " " << sizes.rows << " " << sizes.width << " "
                                        << sizes.vocabulary << " smoothing " << smoothing);
        const auto problem = make_problem(sizes, 0.1);
        const auto wanted = by_torch(problem, smoothing);
        const auto torchs = by_torch(problem, smoothing, GetParam(), type);
        NarrowCopies copies(type);
        const auto ours = by_ours(problem, smoothing, GetParam(), torch::kFloat, &copies);
        for (size_t i = 0; i < wanted.size(); ++i) {
          EXPECT_EQ(ours[i].dtype(), torch::kFloat) << i;
          // Errors of a sum of losses may meet: a very good one is luck.
          const double least = i == 0 ? 1e-4 : 0;
          EXPECT_LE(relative_error(ours[i], wanted[i]),
                    std::max(least, 1.1 * relative_error(torchs[i], wanted[i])))
              << i;
          EXPECT_LT(relative_error(ours[i], wanted[i]), 0.06) << i;
        }
      }
    }
  }
}

// Words that hardly ever come have gradients of a millionth of the others'; fp16 alone ends at
// 6e-8.
TEST_P(LinearCrossEntropyTest, KeepsSmallGradientsInFp16) {
  auto problem = make_problem({64, 8, 200}, 0);
  problem.target.remainder_(100);
  problem.weight *= 0.01;
  problem.bias = torch::arange(200, torch::kDouble).ge(100).to(torch::kDouble) * -16;
  const auto wanted = by_torch(problem, 0)[3].narrow(0, 100, 100);
  NarrowCopies copies(torch::kHalf);
  const auto ours = by_ours(problem, 0, GetParam(), torch::kFloat, &copies);
  EXPECT_LE(relative_error(ours[3].narrow(0, 100, 100), wanted), 0.02);
  EXPECT_LE(
      relative_error(ours[2].narrow(0, 100, 100), by_torch(problem, 0)[2].narrow(0, 100, 100)),
      0.02);
}

TEST_P(LinearCrossEntropyTest, OverflowsForNoLogits) {
  auto problem = make_problem({20, 4, 50}, 0);
  problem.bias = torch::linspace(-3e4, 3e4, 50, torch::kDouble);
  expect_near(by_ours(problem, 0, GetParam(), torch::kFloat), by_torch(problem, 0), 2e-5);
}

// Losses from 0 to 2,000, exponentials of 0 to infinity: rows of all kinds side by side.
TEST_P(LinearCrossEntropyTest, OverflowsForNoLogitsIn16Bits) {
  auto problem = make_problem({200, 16, 300}, 0.1);
  problem.bias = torch::linspace(-1024, 1024, 300, torch::kDouble).round();
  problem.bias.masked_fill_(torch::arange(300).remainder(7).eq(0), -3e38);
  problem.target.narrow(0, 0, 100).remainder_(20).add_(280);
  for (auto* leaf : {&problem.hidden, &problem.weight, &problem.bias}) {
    *leaf = leaf->to(torch::kBFloat16).to(torch::kDouble);
  }
  problem.target.masked_fill_(problem.target.remainder(7).eq(0), 299);
  const auto wanted = by_torch(problem, 0);
  const auto torchs = by_torch(problem, 0, GetParam(), torch::kBFloat16);
  NarrowCopies copies(torch::kBFloat16);
  const auto ours = by_ours(problem, 0, GetParam(), torch::kFloat, &copies);
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_TRUE(ours[i].isfinite().all().item<bool>()) << i;
    EXPECT_LE(relative_error(ours[i], wanted[i]),
              std::max(0.01, 1.1 * relative_error(torchs[i], wanted[i])))
        << i;
  }
}

TEST_P(LinearCrossEntropyTest, HasTheSameLossWithoutGradientsIn16Bits) {
  const auto problem = make_problem({70, 8, 300}, 0.1);
  NarrowCopies copies(torch::kBFloat16);
  const auto with = by_ours(problem, 0, GetParam(), torch::kFloat, &copies);
  const torch::NoGradGuard no_grad;
  const auto on = [&](const torch::Tensor& tensor) { return tensor.to(GetParam(), torch::kFloat); };
  const auto without =
      linear_cross_entropy(on(problem.hidden), on(problem.weight), on(problem.bias),
                           problem.target.to(GetParam()), {.copies = &copies});
  EXPECT_LE(relative_error(without, with[0]), 1e-6);
}

TEST_P(LinearCrossEntropyTest, TakesNoRowsAndNoTargets) {
  expect_near(by_ours(make_problem({0, 5, 11}, 0), 0, GetParam(), torch::kFloat),
              by_torch(make_problem({0, 5, 11}, 0), 0), 0);
  const auto ignored = make_problem({9, 5, 11}, 1.1);
  expect_near(by_ours(ignored, 0.1, GetParam(), torch::kFloat), by_torch(ignored, 0.1), 0);
}

TEST_P(LinearCrossEntropyTest, HasTheSameLossWithoutGradients) {
  const auto problem = make_problem({70, 8, 300}, 0.1);
  const auto wanted = by_torch(problem, 0.2)[0];
  const torch::NoGradGuard no_grad;
  const auto on = [&](const torch::Tensor& tensor) { return tensor.to(GetParam()); };
  const auto sum = linear_cross_entropy(on(problem.hidden).to(torch::kDouble), on(problem.weight),
                                        on(problem.bias), on(problem.target),
                                        {.label_smoothing = 0.2, .chunk_rows = 32});
  EXPECT_FALSE(sum.requires_grad());
  EXPECT_LE(relative_error(sum, wanted), 1e-6);
}

TEST_P(LinearCrossEntropyTest, GivesTheSameBitsEveryTime) {
  const auto problem = make_problem({257, 32, 5000}, 0.1);
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    for (const double smoothing : {0.0, 0.1}) {
      SCOPED_TRACE(testing::Message() << type << " smoothing " << smoothing);
      const auto once = [&] {
        NarrowCopies copies(type);
        return by_ours(problem, smoothing, GetParam(), torch::kFloat,
                       type == torch::kFloat ? nullptr : &copies);
      };
      const auto first = once(), second = once();
      for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(torch::equal(first[i], second[i])) << i;
    }
  }
}

TEST(LinearCrossEntropy, RefusesWhatDoesNotFit) {
  auto problem = make_problem({4, 5, 11}, 0);
  const auto loss = [&](const LinearCrossEntropyOptions& options = {}) {
    return linear_cross_entropy(problem.hidden, problem.weight, problem.bias, problem.target,
                                options);
  };
  EXPECT_THROW(loss({.label_smoothing = 1.5}), c10::Error);
  problem.target[1] = 11;
  EXPECT_THROW(loss(), c10::Error);
  problem.target[1] = -1;
  EXPECT_THROW(loss(), c10::Error);
  problem.target = problem.target.narrow(0, 0, 3);
  EXPECT_THROW(loss(), c10::Error);
}

}  // namespace
}  // namespace tasks::operators
