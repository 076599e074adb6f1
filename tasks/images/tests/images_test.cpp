// The task as a trainer sees it.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <cstdlib>

#include "errors.hpp"
#include "tasks/task.hpp"
#include "temporary_folder.hpp"

namespace tasks::images {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ImagesTest : public testing::Test {
 protected:
  ImagesTest() { setenv("WORLDSIZE_CACHE", folder_.path().c_str(), 1); }

  Options options(const std::string& yaml) const {
    Options options;
    options.task = "images";
    options.config = folder_.write("mine.yaml", yaml).string();
    options.batch_size = 25;
    return options;
  }

  TemporaryFolder folder_;
};

const std::string kSmall =
    "base: laptop\npicture_side: 16\nside: 16\nwidth: 8\nlayers: 1 1\ntrain_pictures: 400\n"
    "evaluation_pictures: 50\nspread: 0.1\n";

Batch batch_of(const Task& task, std::string_view split, size_t from, size_t count) {
  auto dataset = task.dataset(split);
  std::vector<size_t> indices;
  // A step that meets all classes in every batch.
  for (size_t i = 0; i < count; ++i) indices.push_back((from + i) * 37 % *dataset.size());
  return dataset.get_batch(indices);
}

TEST_F(ImagesTest, AreLearned) {
  const auto task = make_task(options(kSmall));
  torch::manual_seed(1);
  const auto model = task->make_model();
  const auto optimizer = task->make_optimizer(model->parameters());
  const auto schedule = task->make_schedule(*optimizer, 80);
  for (size_t step = 0; step < 80; ++step) {
    const auto batch = batch_of(*task, "train", step * 25, 25);
    optimizer->zero_grad();
    task->loss(model->forward(batch.input), batch.target).mean().backward();
    optimizer->step();
    schedule->step();
  }
  model->eval();
  const torch::NoGradGuard no_grad;
  const auto batch = batch_of(*task, "validation", 0, 50);
  const auto score = task->score(task->loss(model->forward(batch.input), batch.target).totals());
  EXPECT_GT(score.metric("accuracy"), 0.3);
  EXPECT_GE(score.metric("top-5"), score.metric("accuracy"));
  EXPECT_LT(double(score), std::log(10.0));
  EXPECT_THAT(task->describe(score), AllOf(HasSubstr("nats a picture"), HasSubstr("chance 2.303"),
                                           HasSubstr("accuracy"), HasSubstr("top-5")));
}

TEST_F(ImagesTest, MetricsCountHitsAmongTheFirstAndTheFirstFive) {
  const auto task = make_task(options(kSmall));
  const torch::NoGradGuard no_grad;
  // Each sample puts this class first, the next one second and so on; the target is class 4.
  const std::vector<int64_t> first{4, 4, 3, 5};
  auto logits = torch::empty({4, 10});
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 10; ++j) {
      logits[i][(first[static_cast<size_t>(i)] + j) % 10] = static_cast<float>(-j);
    }
  }
  const auto score =
      task->score(task->loss(logits, Target(torch::full({4}, 4, torch::kLong))).totals());
  EXPECT_DOUBLE_EQ(score.metric("accuracy"), 0.5);
  EXPECT_DOUBLE_EQ(score.metric("top-5"), 0.75);
}

TEST_F(ImagesTest, LearningRatesAreOneCycle) {
  const auto task = make_task(options(kSmall));
  const auto optimizer = task->make_optimizer(task->make_model()->parameters());
  const auto rate = [&] { return optimizer->param_groups()[0].options().get_lr(); };
  const auto schedule = task->make_schedule(*optimizer, 40);
  EXPECT_DOUBLE_EQ(rate(), 8e-3 / 25);
  for (int step = 0; step < 10; ++step) schedule->step();
  EXPECT_DOUBLE_EQ(rate(), 8e-3);
}

TEST_F(ImagesTest, TheCoursesRunIsXResNet50) {
  auto own = options("base: seed\npicture_side: 16\ntrain_pictures: 10\nevaluation_pictures: 10\n");
  const auto task = make_task(own);
  int64_t parameters = 0;
  for (const auto& parameter : task->make_model()->parameters()) parameters += parameter.numel();
  EXPECT_EQ(parameters, 23'547'754);
  EXPECT_EQ(batch_of(*task, "train", 0, 3).input[0].sizes(),
            (std::vector<int64_t>{3, 3, 160, 160}));
}

TEST_F(ImagesTest, OnesOwnPicturesHaveNoBestPossibleScore) {
  const auto built_in = make_task(options(kSmall));
  EXPECT_EQ(built_in->baselines().size(), 2);
  auto own = options(kSmall);
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    if (entry.is_directory()) own.data = entry.path();
  }
  EXPECT_EQ(make_task(own)->baselines().size(), 1);
}

TEST_F(ImagesTest, WrongSettingsAreNamed) {
  EXPECT_THAT(error_of([&] { make_task(options(kSmall + "flip: 2\n")); }), HasSubstr("flip"));
  auto layers = kSmall;
  layers.replace(layers.find("1 1"), 3, "1 x");
  EXPECT_THAT(error_of([&] { make_task(options(layers)); }), HasSubstr("layers"));
  auto own = options(kSmall);
  own.data = folder_.path() / "nowhere";
  EXPECT_THAT(error_of([&] { make_task(own); }), AllOf(HasSubstr("nowhere"), HasSubstr("--data")));
}

}  // namespace
}  // namespace tasks::images
