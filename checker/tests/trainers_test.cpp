// The trainers of all steps and solutions, freshly rendered, run as a student would run them. A
// step as given is the solution before it but for comments and what comes ready-made (rendering
// made sure), so it is represented by that solution's program.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <functional>

#include "endure/endure.hpp"
#include "files.hpp"
#include "ladder/ladder.hpp"
#include "process/family.hpp"
#include "process/trainer.hpp"
#include "support/text.hpp"

namespace checker {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

const Ladder& ladder() {
  static const Ladder loaded = load_ladder(testing::project_ladder());
  return loaded;
}

fs::path solution(int number) {
  return fs::path(PROGRAM_FOLDER) /
         ("fresh_solution_" + ladder().steps.at(static_cast<size_t>(number - 1)).digits());
}

struct TrainerOutcome {
  GroupResult result;
  std::vector<std::vector<std::string>> lines;  ///< of each rank, standard output
  std::string everything;

  /// The numbers after this phrase, in the order in which a rank printed them.
  std::vector<double> numbers_after(const std::string& phrase, size_t rank = 0) const {
    std::vector<double> numbers;
    for (const auto& line : lines.at(rank)) {
      if (const auto at = line.find(phrase); at != line.npos) {
        numbers.push_back(std::stod(line.substr(at + phrase.size())));
      }
    }
    return numbers;
  }
};

using Arguments = std::vector<std::string>;

class TrainerTest : public ::testing::Test {
 protected:
  using Listener = std::function<void(size_t rank, std::string_view line)>;

  TrainerOutcome run(const fs::path& program, size_t world_size, Arguments options,
                     const Listener& listen = nullptr) const {
    if (std::ranges::find(options, "--config") == options.end()) {
      options.insert(options.begin(), {"--config", TINY_CONFIG});
    }
    options.insert(options.begin(), {"--device", "cpu"});
    options.insert(options.end(), {"--output", folder_.path().string()});
    const TemporaryFolder meeting;
    const TrainerRun run{program, world_size, options, meeting.path() / "store"};
    TrainerOutcome outcome;
    outcome.lines.resize(world_size);
    RankOptions ranks;
    ranks.on_line = [&](size_t rank, bool is_error, std::string_view line) {
      if (!is_error) outcome.lines[rank].emplace_back(line);
      outcome.everything.append(rank_name(rank)).append(line).append("\n");
      if (listen) listen(rank, line);
      return true;
    };
    outcome.result = run_ranks(rank_commands(run), ranks);
    return outcome;
  }

  fs::path output() const { return folder_.path(); }

 private:
  static std::string rank_name(size_t rank) { return "[rank " + std::to_string(rank) + "] "; }

  TemporaryFolder folder_;
};

std::vector<int> step_numbers(int first) {
  std::vector<int> numbers;
  for (const auto& step : ladder().steps) {
    if (step.number >= first) numbers.push_back(step.number);
  }
  return numbers;
}

const auto step_name = [](const auto& info) {
  return ladder().steps.at(static_cast<size_t>(info.param - 1)).name;
};

class StepAsGiven : public TrainerTest, public ::testing::WithParamInterface<int> {};

TEST_P(StepAsGiven, RunsAlone) {
  const auto outcome = run(solution(std::max(1, GetParam() - 1)), 1, {"--max-steps", "3"});
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

// In double precision, on the same global batches (12 samples a step), ranks may differ only in the
// order of sums.
TEST_F(TrainerTest, LossesOnManyRanksAreThoseOfOne) {
  const std::vector<std::string> common{"--precision", "fp64", "--epochs", "2", "--deterministic"};
  std::vector<TrainerOutcome> outcomes;
  for (const size_t world_size : {1U, 2U, 3U}) {
    auto options = common;
    options.insert(options.end(), {"--batch-size", std::to_string(12 / world_size)});
    outcomes.push_back(run(solution(6), world_size, options));
    ASSERT_TRUE(outcomes.back().result.success()) << outcomes.back().everything;
  }
  for (const std::string phrase : {"training loss ", "validation loss ", "test loss: "}) {
    const auto expected = outcomes[0].numbers_after(phrase);
    ASSERT_FALSE(expected.empty()) << outcomes[0].everything;
    for (const size_t other : {1U, 2U}) {
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

// A quarter of the laptop configuration's training, on real text.
TEST_F(TrainerTest, TwoRanksLearnMoreOfRealTextThanHowFrequentWordsAre) {
  const fs::path text = fs::path(PROJECT_FOLDER) / "../shared/data/wikitext-2-small";
  if (!fs::exists(text)) GTEST_SKIP() << "no sample of WikiText-2 at " << text.string();
  const auto outcome =
      run(solution(6), 2, {"--config", "laptop", "--data", text.string(), "--max-steps", "400"});
  ASSERT_TRUE(outcome.result.success()) << outcome.everything;
  const auto loss = outcome.numbers_after("best validation loss: ");
  const auto unigram = outcome.numbers_after("unigram ");
  ASSERT_FALSE(loss.empty() || unigram.empty()) << outcome.everything;
  EXPECT_LT(loss[0], unigram[0] - 0.2) << outcome.everything;
}

// Of a run in the test's output folder, on three ranks, with dropout: what it printed last, and the
// bytes of its model.
class ResumeTest : public TrainerTest {
 protected:
  struct End {
    std::vector<std::string> lines;
    std::string model;

    bool operator==(const End&) const = default;
  };

  TrainerOutcome train(const Arguments& more, size_t world_size = 3) const {
    Arguments options{"--config", config(), "--epochs", "2", "--checkpoint-every", "4"};
    options.insert(options.end(), more.begin(), more.end());
    auto outcome = run(solution(7), world_size, options);
    EXPECT_TRUE(outcome.result.success()) << outcome.everything;
    return outcome;
  }

  // Of lines: those since a run was resumed, at most.
  End end_of(const TrainerOutcome& outcome, size_t lines) const {
    const auto& all = outcome.lines[0];
    const auto count = static_cast<std::ptrdiff_t>(std::min(lines, all.size()));
    return {{all.end() - count, all.end()}, read_file(output() / "model-final.safetensors")};
  }

  End uninterrupted(size_t lines, const Arguments& options = {}) const {
    const auto end = end_of(train(options), lines);
    fs::remove_all(output());
    return end;
  }

  std::string config() const {
    auto text = read_file(TINY_CONFIG);
    const std::string none = "dropout: 0\n";
    text.replace(text.find(none), none.size(), "dropout: 0.3\n");
    write_file(settings_.path() / "config.yaml", text);
    return (settings_.path() / "config.yaml").string();
  }

 private:
  TemporaryFolder settings_;
};

TEST_F(ResumeTest, AResumedRunIsBitForBitTheUninterruptedOne) {
  const auto expected = uninterrupted(4);  // two epochs, the best validation loss, the test loss
  train({"--max-steps", "7"});             // three steps more than were saved
  const auto resumed = train({"--resume"});
  EXPECT_THAT(resumed.lines[0].front(), "resumed after step 4");
  EXPECT_EQ(end_of(resumed, 4), expected) << resumed.everything;
}

// Saving after every step, one of them is an epoch's last.
TEST_F(ResumeTest, AnEpochThatIsDoneIsNotRepeated) {
  const auto expected = uninterrupted(4);
  train({"--epochs", "1", "--checkpoint-every", "1"});
  const auto resumed = train({"--resume"});
  EXPECT_EQ(end_of(resumed, 4), expected) << resumed.everything;
}

TEST_F(ResumeTest, ASignalToOneRankStopsAllAndNothingIsLost) {
  const Arguments long_run{"--epochs", "6"};
  const auto expected = uninterrupted(3, long_run);
  bool told = false;
  // Early enough: five epochs are still to come.
  const auto stopped =
      run(solution(7), 3, {"--config", config(), "--epochs", "6", "--checkpoint-every", "1000000"},
          [&](size_t /*rank*/, std::string_view line) {
            if (told || !line.starts_with("epoch 1/6")) return;
            told = true;
            ::kill(*children_of(::getpid()).rbegin(), SIGUSR1);
          });
  EXPECT_TRUE(stopped.result.success()) << stopped.everything;
  EXPECT_THAT(stopped.everything, HasSubstr("and saved; --resume goes on from there"));
  EXPECT_THAT(stopped.everything, Not(HasSubstr("test loss")));
  EXPECT_EQ(end_of(train({"--resume", "--epochs", "6"}), 3), expected);
}

// In double precision and without dropout, on the same global batches.
TEST_F(ResumeTest, OnAnotherNumberOfRanksTheLossesAreTheSame) {
  const Arguments exact{"--config", TINY_CONFIG, "--precision",        "fp64", "--deterministic",
                        "--epochs", "2",         "--checkpoint-every", "4"};
  const auto train = [&](size_t world_size, Arguments more) {
    more.insert(more.begin(), exact.begin(), exact.end());
    more.insert(more.end(), {"--batch-size", std::to_string(12 / world_size)});
    auto outcome = run(solution(7), world_size, more);
    EXPECT_TRUE(outcome.result.success()) << outcome.everything;
    return outcome;
  };
  const auto expected = train(3, {});
  fs::remove_all(output());
  train(3, {"--max-steps", "6"});
  for (const size_t world_size : {2U, 4U}) {
    const TemporaryFolder kept;
    fs::copy(output(), kept.path() / "output", fs::copy_options::recursive);
    const auto resumed = train(world_size, {"--resume"});
    fs::remove_all(output());
    fs::copy(kept.path() / "output", output(), fs::copy_options::recursive);
    for (const std::string phrase : {"training loss ", "validation loss "}) {
      const auto wanted = expected.numbers_after(phrase), got = resumed.numbers_after(phrase);
      ASSERT_EQ(got.size(), wanted.size()) << resumed.everything;
      for (size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_NEAR(got[i], wanted[i], 1e-10 * wanted[i]) << phrase << world_size << " ranks";
      }
    }
  }
}

TEST_F(ResumeTest, ThereNeedNotBeACheckpointYet) {
  const auto outcome = train({"--resume", "--max-steps", "2"});
  EXPECT_EQ(outcome.lines[0].front(), "no checkpoint to resume from yet: this run starts anew");
  EXPECT_TRUE(outcome.lines[1].empty());
}

// The short form of what `checker endure` does.
void expect_endured(const endure::Outcome& outcome, size_t trials) {
  EXPECT_EQ(outcome.trials(), trials);
  EXPECT_EQ(outcome.right, trials) << join(outcome.wrong, "\n");
}

TEST(Endurance, KilledRunsAreResumedBitForBit) {
  expect_endured(endure::kill_ranks({solution(7), 4, 1, {}}), 4);
}

TEST(Endurance, DamagedCheckpointsAreNoticedAndNamed) {
  expect_endured(endure::damage_checkpoints({solution(7), 12, 2, {}}), 12);
}

TEST_F(TrainerTest, ATrainerWithoutCheckpointsSaysSo) {
  const auto outcome = run(solution(6), 1, {"--resume"});
  EXPECT_FALSE(outcome.result.success());
  EXPECT_THAT(outcome.everything, HasSubstr("this trainer makes no checkpoints; that of step 07"));
}

TEST_F(TrainerTest, AWrongOptionEndsAllRanksWithOneSentence) {
  const auto outcome = run(solution(6), 2, {"--frobnicate"});
  EXPECT_FALSE(outcome.result.success());
  EXPECT_THAT(outcome.everything, HasSubstr("frobnicate"));
}

TEST_F(TrainerTest, TorchrunStartsTheFinishedTrainer) {
  const std::string find =
      "for t in " + shell_quote(VENV_TORCHRUN) +
      " torchrun; do \"$t\" --help >/dev/null 2>&1 && echo \"$t\" && break; done";
  const auto torchrun = std::string(trim(testing::run_program({"sh", "-c", find}).text));
  if (torchrun.empty()) GTEST_SKIP() << "no torchrun that works: Python cannot import torch here";
  const auto outcome = testing::run_program(
      {torchrun, "--no-python", "--nnodes=1", "--nproc-per-node=2", "--rdzv-backend=c10d",
       "--rdzv-endpoint=localhost:0", solution(6).string(), "--config", TINY_CONFIG, "--device",
       "cpu", "--max-steps", "3", "--output", output().string()});
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  const auto first = outcome.text.find("test loss: ");
  EXPECT_NE(first, outcome.text.npos) << outcome.text;
  EXPECT_EQ(outcome.text.find("test loss: ", first + 1), outcome.text.npos) << outcome.text;
}

}  // namespace
}  // namespace checker
