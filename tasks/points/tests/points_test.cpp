// The task as a trainer sees it.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <numeric>

#include "tasks/task.hpp"
#include "temporary_folder.hpp"

namespace tasks::points {
namespace {

Options options_of(const TemporaryFolder& folder, const std::string& yaml) {
  Options options;
  options.task = "points";
  options.config = folder.write("mine.yaml", "base: small\n" + yaml).string();
  return options;
}

Score train_and_score(const Task& task) {
  torch::manual_seed(1);
  const auto model = task.make_model();
  const auto optimizer = task.make_optimizer(model->parameters());
  const auto schedule = task.make_schedule(*optimizer, 60);
  auto train = task.dataset("train");
  for (size_t step = 0; step < 60; ++step) {
    std::vector<size_t> indices;
    for (size_t i = 0; i < 40; ++i) indices.push_back((step * 40 + i) % *train.size());
    const auto batch = train.get_batch(indices);
    optimizer->zero_grad();
    task.loss(model->forward(batch.input), batch.target).mean().backward();
    optimizer->step();
    schedule->step();
  }
  model->eval();
  const torch::NoGradGuard no_grad;
  auto near = task.dataset("near");
  std::vector<size_t> all(*near.size());
  std::iota(all.begin(), all.end(), size_t{0});
  const auto batch = near.get_batch(all);
  return task.score(task.loss(model->forward(batch.input), batch.target).totals());
}

TEST(Points, AreLearned) {
  const TemporaryFolder folder;
  const auto task = make_task(options_of(folder, ""));
  const auto score = train_and_score(*task);
  EXPECT_LT(double(score), 0.1);
  EXPECT_GT(score.metric("close"), 0.5);
  EXPECT_NEAR(score.metric("RMSE"), std::sqrt(double(score)), 1e-6);
}

TEST(Points, TrainInFp16OnRequest) {
  const TemporaryFolder folder;
  const auto task = make_task(options_of(folder, "fp16: true\n"));
  EXPECT_EQ(task->make_model()->parameters()[0].dtype(), torch::kHalf);
  EXPECT_LT(double(train_and_score(*task)), 0.2);
}

}  // namespace
}  // namespace tasks::points
