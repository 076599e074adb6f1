// The batch-size study: its trials, their configurations, its table and its plot.
#include "bench/study.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <pugixml.hpp>

#include "course/mapping.hpp"
#include "files.hpp"
#include "support/error.hpp"

namespace checker::bench {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const StudyBase kBase{
    .name = "laptop", .batch_size = 32, .learning_rate = 5e-3, .warm_up_steps = 20};

std::vector<size_t> times_of(const std::vector<Trial>& trials) {
  std::vector<size_t> times;
  for (const auto& trial : trials) times.push_back(trial.times);
  return times;
}

TEST(StudyTrials, BatchesDoubleAndEachButTheFirstHasTwoRates) {
  const auto trials = study_trials(kBase, {.most_ranks = 4, .largest = 4, .samples = 19200});
  EXPECT_THAT(times_of(trials), ElementsAre(1, 2, 2, 4, 4));
  EXPECT_THAT(trials[0].learning_rate, DoubleEq(5e-3));
  EXPECT_TRUE(trials[3].scaled);
  EXPECT_THAT(trials[3].learning_rate, DoubleEq(1e-2));
  EXPECT_FALSE(trials[4].scaled);
  EXPECT_THAT(trials[4].learning_rate, DoubleEq(5e-3));
}

TEST(StudyTrials, AllSeeEquallyManySamples) {
  // 19201 is not a multiple of the largest batch: the next that is one.
  for (const auto& trial : study_trials(kBase, {.most_ranks = 4, .largest = 8, .samples = 19201})) {
    EXPECT_EQ(trial.steps * trial.samples_a_step(), 19456) << trial.times;
    EXPECT_EQ(trial.samples_a_step(), 32 * static_cast<int64_t>(trial.times));
  }
}

TEST(StudyTrials, RanksComeFirstThenLargerBatchesOfARank) {
  std::vector<std::pair<size_t, int64_t>> found;
  for (const auto& trial : study_trials(kBase, {.most_ranks = 3, .largest = 8})) {
    if (trial.scaled || trial.times == 1) found.emplace_back(trial.ranks, trial.batch_size);
  }
  EXPECT_THAT(found,
              ElementsAre(std::pair(1, 32), std::pair(2, 32), std::pair(2, 64), std::pair(2, 128)));
}

// The trainer multiplies by the root of its ranks, whatever the study wants.
TEST(StudyTrials, ConfigurationsLeaveOutTheTrainersOwnFactor) {
  const auto trials = study_trials(kBase, {.most_ranks = 4, .largest = 4, .samples = 19200});
  EXPECT_EQ(config_of(trials[3], kBase),
            "base: laptop\nepochs: 1000000\nmax_steps: 150\nbatch_size: 32\n"
            "learning_rate: 0.005\nwarm_up_steps: 5\n");
  EXPECT_THAT(config_of(trials[4], kBase), HasSubstr("learning_rate: 0.0025\n"));
  auto silent = kBase;
  silent.warm_up_steps = 0;
  const auto config = config_of(study_trials(silent, {}).back(), silent);
  EXPECT_THAT(config, ::testing::Not(HasSubstr("warm_up_steps")));
}

// The configurations of the tutorial on weather were written by its authors.
TEST(StudyTrials, AreTheWeatherTutorialsOwn) {
  const auto folder = std::filesystem::path(PROJECT_FOLDER) / "tasks" / "weather" / "configs";
  const auto base = read_study_base(folder, "bs16");
  EXPECT_EQ(base.max_steps, 30000);
  for (const auto& trial :
       study_trials(base, {.most_ranks = 1, .largest = 64, .samples = 479232})) {
    if (!trial.scaled) continue;
    const auto theirs = read_study_base(folder, "bs" + std::to_string(16 * trial.times));
    // Theirs are rounded down from 30,000 steps of 16 samples.
    EXPECT_EQ(theirs.max_steps, 30000 / static_cast<int64_t>(trial.times));
    EXPECT_NEAR(double(trial.steps), double(theirs.max_steps), 0.002 * double(theirs.max_steps));
    EXPECT_NEAR(trial.learning_rate, theirs.learning_rate, 1e-8) << trial.times;
    EXPECT_NEAR(double(trial.warm_up_steps), double(theirs.warm_up_steps), 3) << trial.times;
  }
}

TEST(StudyBases, AreReadThroughTheirBases) {
  const TemporaryFolder folder;
  write_file(folder.path() / "one.yaml", "batch_size: 8\nlearning_rate: 0.1\nwarm_up_steps: 4\n");
  write_file(folder.path() / "two.yaml", "base: one\nlearning_rate: 0.2\n");
  write_file(folder.path() / "none.yaml", "batch_size: 8\n");
  write_file(folder.path() / "words.yaml", "batch_size: many\nlearning_rate: 0.1\n");
  const auto base = read_study_base(folder.path(), "two");
  EXPECT_EQ(base.batch_size, 8);
  EXPECT_EQ(base.learning_rate, 0.2);
  EXPECT_EQ(base.warm_up_steps, 4);
  EXPECT_EQ(base.max_steps, 0);
  EXPECT_THROW(read_study_base(folder.path(), "none"), Error);
  EXPECT_THROW(read_study_base(folder.path(), "words"), Error);
  EXPECT_THROW(read_study_base(folder.path(), "three"), Error);
}

std::vector<TrialResult> some_results() {
  auto trials = study_trials(kBase, {.most_ranks = 2, .largest = 2, .samples = 640});
  return {{trials[0], {{0.5, 4.0}, {0.7, 6.0}}, ""},
          {trials[1], {{0.55, 2.0}, {0.6, 3.0}}, ""},
          {trials[2], {}, "rank 1 failed: killed"}};
}

TEST(StudyTable, HasMeansWithLeastAndMost) {
  EXPECT_THAT(study_table(some_results(), false),
              ElementsAre("samples a step  ranks            learning rate  steps  validation "
                          "loss (least-most)  seconds",
                          "            32      1                    0.005     20        0.6000 "
                          "(0.5000-0.7000)      5.0",
                          "            64      2  0.007071, times sqrt(2)     10        0.5750 "
                          "(0.5500-0.6000)      2.5",
                          "            64      2         0.005, unchanged     10                "
                          "        failed"));
  EXPECT_EQ(study_table(some_results(), true)[2],
            "| 32 | 1 | 0.005 | 20 | 0.6000 (0.5000-0.7000) | 5.0 |");
}

size_t count(const std::string& svg, const std::string& query) {
  pugi::xml_document page;
  EXPECT_TRUE(page.load_string(svg.c_str()));
  return page.select_nodes(query.c_str()).size();
}

TEST(StudyPlot, HasALineForEachWayToChooseTheRate) {
  auto results = some_results();
  // The first batch on both lines, the second on one, and two dots in the legend.
  EXPECT_EQ(count(study_plot(results), "//circle"), 5U);
  // Two axes, three bars from least to most, one stretch.
  EXPECT_EQ(count(study_plot(results), "//line"), 6U);
  results[2] = {results[2].what, {{0.9, 1.0}}, ""};
  EXPECT_EQ(count(study_plot(results), "//circle"), 6U);
  EXPECT_EQ(count(study_plot(results), "//line"), 8U);
  EXPECT_EQ(count(study_plot({}), "//circle"), 2U);
}

}  // namespace
}  // namespace checker::bench
