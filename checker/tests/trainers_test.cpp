// The trainers of all steps and solutions, freshly rendered, run as a student would run them.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "trainer_fixture.hpp"

namespace checker {
namespace {

namespace fs = std::filesystem;
using testing::course;
using ::testing::HasSubstr;
using testing::solution;
using testing::TrainerOutcome;
using testing::TrainerTest;

std::vector<int> step_numbers(int first) {
  std::vector<int> numbers;
  for (const auto& step : course().steps) {
    if (step.is_beside()) continue;
    if (const int number = std::stoi(step.label()); number >= first) numbers.push_back(number);
  }
  return numbers;
}

const auto step_name = [](const auto& info) { return testing::numbered(info.param).name; };

// Nobody edits solutions, so they stand for steps as given. Comments apart, that is the parent's
// solution (rendering makes sure), or, where the trainer has no TODO, the step's own.
fs::path as_given(int number) {
  const auto& step = testing::numbered(number);
  const auto todos = course().program_of(step).source.todos();
  const auto in_trainer = [&](int todo) { return todos.contains(todo); };
  if (std::ranges::none_of(step.todos, in_trainer)) return solution(number);
  return solution(std::stoi(course().step(step.parent).label()));
}

class StepAsGiven : public TrainerTest, public ::testing::WithParamInterface<int> {};

TEST_P(StepAsGiven, RunsAlone) {
  const auto outcome = run(as_given(GetParam()), 1, {"--max-steps", "3"});
  EXPECT_TRUE(outcome.result.success()) << outcome.everything;
  EXPECT_THAT(outcome.everything, HasSubstr("test loss: "));
}

INSTANTIATE_TEST_SUITE_P(Step, StepAsGiven, ::testing::ValuesIn(step_numbers(1)), step_name);

class Solution : public TrainerTest, public ::testing::WithParamInterface<int> {};

TEST_P(Solution, RunsOnOneTwoAndThreeRanks) {
  for (const size_t world_size : {1U, 2U, 3U}) {
    const auto outcome = run(solution(GetParam()), world_size, {"--max-steps", "3"});
    EXPECT_TRUE(outcome.result.success()) << outcome.everything;
    EXPECT_EQ(outcome.numbers_after("test loss: ").size(), 1U) << outcome.everything;
  }
}

INSTANTIATE_TEST_SUITE_P(Step, Solution, ::testing::ValuesIn(step_numbers(2)), step_name);

TEST_F(TrainerTest, TheAllReducedLossIsTheSameOnEveryRank) {
  const auto outcome = run(solution(5), 3, {"--max-steps", "3"});
  ASSERT_TRUE(outcome.result.success()) << outcome.everything;
  EXPECT_EQ(outcome.lines[1], outcome.lines[0]);
  EXPECT_EQ(outcome.lines[2], outcome.lines[0]);
}

TEST_F(TrainerTest, BeforeThatEachRankReportsItsOwnShare) {
  const auto outcome = run(solution(4), 2, {"--max-steps", "3"});
  ASSERT_TRUE(outcome.result.success()) << outcome.everything;
  EXPECT_NE(outcome.numbers_after("validation loss ", 0),
            outcome.numbers_after("validation loss ", 1));
}

TEST_F(TrainerTest, InTheEndOnlyRankZeroSpeaksAndBothModelsAreSaved) {
  const auto outcome = run(solution(6), 3, {"--max-steps", "3"});
  ASSERT_TRUE(outcome.result.success()) << outcome.everything;
  EXPECT_FALSE(outcome.lines[0].empty());
  EXPECT_TRUE(outcome.lines[1].empty()) << outcome.everything;
  EXPECT_TRUE(outcome.lines[2].empty()) << outcome.everything;
  EXPECT_TRUE(fs::exists(output() / "model-best.safetensors"));
  EXPECT_TRUE(fs::exists(output() / "model-final.safetensors"));
}

// In double precision, on the same global batches, ranks may differ only in the order of sums.
void expect_the_losses_of_one_rank(const std::vector<TrainerOutcome>& outcomes) {
  for (const std::string phrase : {"training loss ", "validation loss ", "test loss: "}) {
    const auto expected = outcomes[0].numbers_after(phrase);
    ASSERT_FALSE(expected.empty()) << outcomes[0].everything;
    for (size_t other = 1; other < outcomes.size(); ++other) {
      const auto actual = outcomes[other].numbers_after(phrase);
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        // The closing lines are for people and shorter than the rest.
        const double tolerance = phrase == "test loss: " ? 1e-3 : 1e-10 * std::abs(expected[i]);
        EXPECT_NEAR(actual[i], expected[i], tolerance) << phrase << "on " << other + 1 << " ranks";
      }
    }
  }
}

// 12 samples a step.
TEST_F(TrainerTest, LossesOnManyRanksAreThoseOfOne) {
  std::vector<TrainerOutcome> outcomes;
  for (const size_t world_size : {1U, 2U, 3U}) {
    outcomes.push_back(run(solution(6), world_size,
                           {"--precision", "fp64", "--epochs", "2", "--deterministic",
                            "--batch-size", std::to_string(12 / world_size)}));
    ASSERT_TRUE(outcomes.back().result.success()) << outcomes.back().everything;
  }
  expect_the_losses_of_one_rank(outcomes);
}

// Batches of unequally long texts, whose every word counts the same on any number of ranks. The
// learning rate grows with the root of the world size, which the configuration undoes.
TEST_F(TrainerTest, SoAreThoseOfUnequallyLongTexts) {
  const auto cache = output() / "cache";
  setenv("WORLDSIZE_CACHE", cache.c_str(), 1);
  std::vector<TrainerOutcome> outcomes;
  for (const size_t world_size : {1U, 2U, 3U}) {
    std::array<char, 32> rate{};
    std::snprintf(rate.data(), rate.size(), "%.17g",
                  2e-3 / std::sqrt(static_cast<double>(world_size)));
    const auto config = output() / "config.yaml";
    write_file(config,
               "base: laptop\nwidth: 16\nheads: 2\nfeed_forward: 32\ndocuments: 120\n"
               "encoder_layers: 1\ndecoder_layers: 1\nwarm_up_steps: 2\nlearning_rate: " +
                   std::string(rate.data()) + "\n");
    outcomes.push_back(run(solution(9), world_size,
                           {"--task", "summaries", "--config", config.string(), "--device", "cpu",
                            "--precision", "fp64", "--epochs", "2", "--deterministic",
                            "--batch-size", std::to_string(12 / world_size)}));
    ASSERT_TRUE(outcomes.back().result.success()) << outcomes.back().everything;
  }
  unsetenv("WORLDSIZE_CACHE");
  expect_the_losses_of_one_rank(outcomes);
}

// A text of the reader's own, as --data takes it: words of which each has few successors. How often
// words are tells little of what comes next; what came before tells much.
void write_text(const fs::path& file, unsigned seed, size_t lines) {
  std::mt19937 random(seed);
  std::string text;
  for (size_t line = 0; line < lines; ++line) {
    unsigned word = random() % 40;
    for (size_t i = 0; i < 12; ++i) {
      text += "w" + std::to_string(word) + " ";
      word = (7 * word + 3 * (random() % 3)) % 40;
    }
    text += "\n";
  }
  write_file(file, text);
}

TEST_F(TrainerTest, TwoRanksLearnMoreOfATextThanHowFrequentWordsAre) {
  const auto text = output() / "text";
  write_text(text / "train.txt", 1, 1500);
  write_text(text / "valid.txt", 2, 150);
  write_text(text / "test.txt", 3, 150);
  const auto outcome = run(
      solution(6), 2,
      {"--data", text.string(), "--batch-size", "16", "--epochs", "3", "--config", TINY_CONFIG});
  ASSERT_TRUE(outcome.result.success()) << outcome.everything;
  const auto loss = outcome.numbers_after("best validation loss: ");
  const auto unigram = outcome.numbers_after("unigram ");
  ASSERT_FALSE(loss.empty() || unigram.empty()) << outcome.everything;
  EXPECT_LT(loss[0], unigram[0] - 0.5) << outcome.everything;
}

TEST_F(TrainerTest, ATrainerWithoutCheckpointsSaysSo) {
  const auto outcome = run(solution(6), 1, {"--resume"});
  EXPECT_FALSE(outcome.result.success());
  EXPECT_THAT(outcome.everything, HasSubstr("this trainer makes no checkpoints"));
}

TEST_F(TrainerTest, AWrongOptionEndsAllRanksWithOneSentence) {
  const auto outcome = run(solution(6), 2, {"--frobnicate"});
  EXPECT_FALSE(outcome.result.success());
  EXPECT_THAT(outcome.everything, HasSubstr("frobnicate"));
}

TEST_F(TrainerTest, TorchrunStartsTheFinishedTrainer) {
  const auto torchrun = testing::torchrun();
  if (torchrun.empty()) GTEST_SKIP() << "no torchrun that works: Python cannot import torch here";
  const auto outcome = testing::run_program(
      {torchrun, "--no-python", "--nnodes=1", "--nproc-per-node=2", "--rdzv-backend=c10d",
       "--log-dir=" + (output() / "torchrun").string(), "--rdzv-endpoint=localhost:0",
       solution(6).string(), "--config", TINY_CONFIG, "--device", "cpu", "--max-steps", "3",
       "--output", output().string()});
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  const auto first = outcome.text.find("test loss: ");
  EXPECT_NE(first, outcome.text.npos) << outcome.text;
  EXPECT_EQ(outcome.text.find("test loss: ", first + 1), outcome.text.npos) << outcome.text;
}

}  // namespace
}  // namespace checker
