// Batches of several tensors, and losses and metrics that add up exactly.
#include "tasks/score.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <cmath>
#include <stdexcept>

#include "errors.hpp"
#include "tasks/task.hpp"

namespace tasks {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Input, OfOneTensorIsThatTensor) {
  const Input input = torch::ones({2, 3});
  const torch::Tensor& tensor = input;
  EXPECT_TRUE(tensor.is_same(input[0]));
  EXPECT_TRUE(torch::equal(input.to(torch::kCPU), torch::ones({2, 3})));
}

TEST(Input, OfSeveralTensorsIsNone) {
  const Input input{torch::ones({2}), torch::zeros({3})};
  EXPECT_EQ(input.to(torch::kCPU).tensors().size(), 2U);
  EXPECT_EQ(input.clone()[1].numel(), 3);
  EXPECT_THAT(
      [&] { static_cast<void>(static_cast<const torch::Tensor&>(input)); },
      ThrowsMessage<std::logic_error>(HasSubstr("2 tensors: take them one by one, as input[0]")));
  EXPECT_THROW(input[2], std::out_of_range);
}

TEST(Target, CountsItsElementsUnlessSomePad) {
  EXPECT_EQ(Target(torch::ones({2, 3})).count(), 6);
  EXPECT_EQ(Target(torch::ones({2, 3}), 4).to(torch::kCPU).count(), 4);
  EXPECT_EQ((Batch{torch::ones({2}), {torch::ones({2}), 1}}).clone().target.count(), 1);
}

TEST(Loss, AddsUpExactly) {
  const auto sum = torch::tensor(6.0, torch::requires_grad());
  const Loss loss{sum * 1, 4};
  EXPECT_EQ(loss.mean().item<double>(), 1.5);
  EXPECT_TRUE(loss.mean().requires_grad());
  const auto totals = loss.totals();
  EXPECT_EQ(totals.dtype(), torch::kDouble);
  EXPECT_FALSE(totals.requires_grad());
  EXPECT_TRUE(torch::equal(totals, torch::tensor({6.0, 4.0}, torch::kDouble)));
}

// Fits nothing: its output is what it is given. Its metrics are a share and a root.
class Echo : public Task {
 public:
  Echo() : Task(torch::kDouble) {}
  Baselines baselines() const override { return {}; }

 private:
  std::shared_ptr<const Dataset::Source> new_source(std::string_view) const override {
    return nullptr;
  }
  std::string in_words(double mean_loss) const override { return fmt::format("{}", mean_loss); }
  std::shared_ptr<Model> new_model() const override { return nullptr; }
  std::unique_ptr<torch::optim::Optimizer> new_optimizer(
      std::vector<torch::Tensor>) const override {
    return nullptr;
  }
  Loss compute_loss(const torch::Tensor& output, const Target& target) const override {
    return {(output - target.tensor()).abs().sum(), target.count()};
  }
  std::vector<Metric> metrics() const override {
    return {{"hits", Metric::Of::ratio}, {"RMSE", Metric::Of::root_of_ratio}};
  }
  torch::Tensor compute_metrics(const torch::Tensor& output, const Target& target) const override {
    const auto error = output - target.tensor();
    const auto count = torch::full({}, target.count(), torch::kDouble);
    return torch::stack({torch::stack({error.eq(0).sum().to(torch::kDouble), count}),
                         torch::stack({error.square().sum(), count})});
  }
};

TEST(Score, OfSharesOfAnySizeIsThatOfTheWhole) {
  const torch::NoGradGuard no_grad;
  const Echo task;
  const auto output = torch::tensor({1.0, 2.0, 3.0, 4.0, 5.0}, torch::kDouble);
  const auto target = torch::tensor({1.0, 4.0, 3.0, 4.0, 9.0}, torch::kDouble);
  const auto whole = task.score(task.loss(output, target).totals());
  auto totals = task.no_totals(torch::kCPU);
  for (const auto& [from, to] : {std::pair{0, 1}, {1, 5}}) {
    totals += task.loss(output.slice(0, from, to), target.slice(0, from, to)).totals();
  }
  for (const auto& score : {whole, task.score(totals)}) {
    EXPECT_DOUBLE_EQ(score, 6.0 / 5);
    EXPECT_DOUBLE_EQ(score.metric("hits"), 3.0 / 5);
    EXPECT_DOUBLE_EQ(score.metric("RMSE"), std::sqrt(20.0 / 5));
    EXPECT_EQ(task.describe(score), "1.2, hits 0.6, RMSE 2");
  }
  EXPECT_THAT(error_of([&] { return whole.metric("misses"); }),
              HasSubstr("no metric 'misses'; the task has: hits, RMSE"));
}

// Training does not measure: there is nothing to wait for, and nothing to say.
TEST(Score, OfTrainingHasNoMetrics) {
  const Echo task;
  const auto totals = task.loss(torch::ones({2}, torch::kDouble), torch::zeros({2})).totals();
  EXPECT_EQ(totals.sizes(), task.no_totals(torch::kCPU).sizes());
  const auto score = task.score(totals);
  EXPECT_EQ(score, 1);
  EXPECT_TRUE(std::isnan(score.metric("hits")));
  EXPECT_EQ(task.describe(score), "1");
}

TEST(Score, AnyIsBetterThanNone) {
  Score best;
  EXPECT_LT(Score(1e300), best);
  best = 2.5;
  EXPECT_FALSE(Score(3) < best);
}

}  // namespace
}  // namespace tasks
