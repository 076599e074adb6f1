#include "tasks/progress.hpp"

#include <torch/torch.h>

#include "errors.hpp"
#include "progress_bar.hpp"

namespace tasks {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Options options(int64_t epochs, int64_t batch_size, int64_t max_steps) {
  Options options;
  options.epochs = epochs;
  options.batch_size = batch_size;
  options.max_steps = max_steps;
  return options;
}

TEST(Progress, CountsStepsOfWholeBatches) {
  const Progress progress(options(3, 4, 0), 19);
  EXPECT_EQ(progress.steps_per_epoch(), 4);
  EXPECT_EQ(progress.total_steps(), 12);
  EXPECT_FALSE(progress.finished());
}

TEST(Progress, EndsAfterMaxSteps) {
  Progress progress(options(3, 4, 6), 19);
  EXPECT_EQ(progress.total_steps(), 6);
  const Loss loss{torch::tensor(8.0), 4};
  for (int step = 1; step < 6; ++step) EXPECT_TRUE(progress.step(loss)) << step;
  EXPECT_FALSE(progress.finished());
  EXPECT_FALSE(progress.step(loss));
  EXPECT_TRUE(progress.finished());
}

TEST(Progress, WithoutMaxStepsNeverEndsByItself) {
  Progress progress(options(1, 4, 0), 4);
  const Loss loss{torch::tensor(8.0), 4};
  for (int step = 0; step < 5; ++step) EXPECT_TRUE(progress.step(loss));
  EXPECT_FALSE(progress.finished());
}

TEST(Progress, TellsDataSetsTheEpoch) {
  Progress progress(options(3, 4, 0), 19);
  const Loss loss{torch::tensor(8.0), 4};
  for (int64_t step = 0; step < 12; ++step) {
    EXPECT_EQ(Progress::current_epoch(), step / 4);
    progress.step(loss);
  }
  progress.resume(5);
  EXPECT_EQ(Progress::current_epoch(), 1);
  const Progress another(options(3, 4, 0), 19);
  EXPECT_EQ(Progress::current_epoch(), 0);
}

TEST(Progress, RefusesDataThatFillNoBatch) {
  EXPECT_THAT(error_of([] { const Progress progress(options(1, 32, 0), 31); }),
              AllOf(HasSubstr("31 samples"), HasSubstr("one batch of 32"), HasSubstr("1 ranks"),
                    HasSubstr("at most 31")));
}

TEST(Progress, SaysOnlyThePlanWhereStderrIsNoTerminal) {
  testing::internal::CaptureStderr();
  {
    Progress progress(options(1, 1, 0), 100);
    for (int step = 0; step < 100; ++step) progress.step({torch::tensor(8.0), 4});
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "1 rank, batches of 1 each: 100 steps for one pass over the data\n");
}

const BarState half_done{.step = 50,
                         .total_steps = 100,
                         .loss = 4.9123,
                         .targets_per_second = 18345,
                         .seconds_left = 42.3};

TEST(Bar, ShowsStepLossSpeedAndTimeLeft) {
  EXPECT_EQ(format_bar(half_done, 100, false),
            "[===============>              ]  50/100  loss 4.912  18.3k tokens/s  0:42 left");
}

TEST(Bar, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ(format_bar({.step = 0, .total_steps = 9}, 100, false),
            "[>                             ] 0/9");
}

TEST(Bar, ShrinksThenGoesThenIsCut) {
  EXPECT_EQ(format_bar(half_done, 60, false),
            "[=====>     ]  50/100  loss 4.912  18.3k tokens/s  0:42 left");
  EXPECT_EQ(format_bar(half_done, 50, false), " 50/100  loss 4.912  18.3k tokens/s  0:42 left");
  EXPECT_EQ(format_bar(half_done, 10, false), " 50/100  l");
  EXPECT_EQ(format_bar(half_done, 0, false), "");
  for (int width = 0; width < 120; ++width) {
    EXPECT_LE(format_bar(half_done, width, false).size(), size_t(width));
  }
}

TEST(Bar, IsFullAtTheEndAndBeyond) {
  for (const int64_t step : {100, 150}) {
    EXPECT_THAT(format_bar({.step = step, .total_steps = 100}, 100, false),
                HasSubstr("[" + std::string(30, '=') + "]"));
  }
}

TEST(Bar, ColoursOnlyOnDemand) {
  EXPECT_THAT(format_bar(half_done, 100, true), HasSubstr("\x1b[32m=="));
}

TEST(Bar, RoundsLargeNumbers) {
  const auto line = format_bar({.step = 1,
                                .total_steps = 2,
                                .loss = {},
                                .targets_per_second = 1.234e6,
                                .seconds_left = 3725},
                               100, false);
  EXPECT_THAT(line, AllOf(HasSubstr("1.23M tokens/s"), HasSubstr("1:02:05 left")));
}

}  // namespace
}  // namespace tasks
