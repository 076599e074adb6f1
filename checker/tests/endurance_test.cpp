// Training that is interrupted, in whatever way, goes on as if nothing had been.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "endure/endure.hpp"
#include "process/family.hpp"
#include "support/text.hpp"
#include "trainer_fixture.hpp"

namespace checker {
namespace {

namespace fs = std::filesystem;
using testing::Arguments;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::solution;
using testing::TrainerOutcome;

// Of a run in the test's output folder, on three ranks, with dropout: what it printed last, and the
// bytes of its model.
class ResumeTest : public testing::TrainerTest {
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
  EXPECT_THAT(stopped.everything, HasSubstr("and saved; --resume continues from there"));
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
  EXPECT_EQ(outcome.lines[0].front(), "no checkpoint yet: this run starts from the beginning");
  EXPECT_TRUE(outcome.lines[1].empty());
}

// One of three ranks is killed in the second epoch; torchrun starts all three again.
TEST_F(ResumeTest, TorchrunsRestartGoesOnFromTheCheckpoint) {
  const auto torchrun = testing::torchrun();
  if (torchrun.empty()) GTEST_SKIP() << "no torchrun that works: Python cannot import torch here";
  const auto expected = uninterrupted(0).model;
  Command command;
  command.arguments = {torchrun,
                       "--no-python",
                       "--nnodes=1",
                       "--nproc-per-node=3",
                       "--max-restarts=1",
                       "--rdzv-backend=c10d",
                       "--rdzv-endpoint=localhost:0",
                       "--log-dir=" + (output() / "torchrun").string(),
                       solution(7).string(),
                       "--config",
                       config(),
                       "--device",
                       "cpu",
                       "--epochs",
                       "2",
                       "--checkpoint-every",
                       "4",
                       "--resume",
                       "--output",
                       output().string()};
  command.environment = {"OMP_NUM_THREADS=1"};
  std::string said;
  bool killed = false;
  RankOptions options;
  options.on_line = [&](size_t /*rank*/, bool /*is_error*/, std::string_view line) {
    said.append(line).append("\n");
    if (killed || !line.starts_with("epoch 1/")) return true;
    killed = true;
    const auto ranks = children_of(*children_of(::getpid()).begin());
    ::kill(*ranks.rbegin(), SIGKILL);
    return true;
  };
  EXPECT_TRUE(run_ranks({&command, 1}, options).success()) << said;
  EXPECT_THAT(said, HasSubstr("resumed after step"));
  EXPECT_TRUE(read_file(output() / "model-final.safetensors") == expected) << said;
}

// The short form of what `checker endure` does.
void expect_endured(const endure::Outcome& outcome, size_t trials) {
  EXPECT_EQ(outcome.trials(), trials);
  EXPECT_EQ(outcome.right, trials) << join(outcome.wrong, "\n");
}

fs::path sharded() { return solution(7).parent_path() / "sharded_trainer"; }

TEST(Endurance, KilledRunsAreResumedBitForBit) {
  expect_endured(endure::kill_ranks({.program = solution(7), .count = 2, .seed = 1}), 2);
}

TEST(Endurance, DamagedCheckpointsAreNoticedAndNamed) {
  expect_endured(endure::damage_checkpoints({.program = solution(7), .count = 12, .seed = 2}), 12);
}

// The same where each rank saves a share of the model.
TEST(Endurance, KilledRunsOfAShardedModelAreResumedBitForBit) {
  expect_endured(endure::kill_ranks({.program = sharded(), .count = 2, .seed = 3}), 2);
}

TEST(Endurance, DamagedSharesAreNoticedAndNamed) {
  expect_endured(endure::damage_checkpoints({.program = sharded(), .count = 12, .seed = 4}), 12);
}

}  // namespace
}  // namespace checker
