// What takes the place of torchrun and of the trainer in a job that gets a signal: no Slurm is
// needed to see who dies of it.
#include <gmock/gmock.h>

#include "files.hpp"
#include "jobs/stand_in.hpp"
#include "support/text.hpp"

namespace checker {
namespace {

namespace fs = std::filesystem;

class StandInTest : public ::testing::Test {
 protected:
  // Two ranks under a torchrun, started by a shell after this. All get SIGUSR1 once both are ready;
  // then `afterwards` runs. The exit status is torchrun's.
  int signalled(const std::string& before, const std::string& afterwards) const {
    const std::string script =
        before +
        "\n\"$checker\" stand-in torchrun --nproc-per-node=2 --no-python "
        "sh -c 'exec \"$checker\" stand-in rank rank-$LOCAL_RANK' &\n"
        "until [ -e rank-0.ready ] && [ -e rank-1.ready ]; do sleep 0.01; done\n"
        "kill -USR1 0\n" +
        afterwards + "\nwait $! || wait $!\n";
    write_file(folder_.path() / "script", script);
    return testing::run_program({"setsid", "--wait", "bash", "script"},
                                {std::string("checker=") + CHECKER_PROGRAM}, folder_.path())
        .status;
  }

  std::string left(const std::string& name) const {
    const auto file = folder_.path() / name;
    return fs::exists(file) ? "\"" + read_file(file) + "\"" : "nothing";
  }

  TemporaryFolder folder_;
};

constexpr const char* kBothTold =
    "until [ -e rank-0.told ] && [ -e rank-1.told ]; do sleep 0.01; done\n";

TEST_F(StandInTest, RanksSaveUntilTheyMayStopWhereTorchrunIgnoresTheSignal) {
  EXPECT_EQ(signalled("trap '' USR1", std::string(kBothTold) + ">" + kMayStop), 0);
  for (const std::string rank : {"rank-0", "rank-1"}) {
    EXPECT_EQ(left(rank + ".told"), "\"USR1\"");
    EXPECT_EQ(left(rank + ".lost"), "nothing");
  }
}

// The shell survives, and what it starts does not.
TEST_F(StandInTest, RanksTellThatTheSignalEndedTorchrun) {
  EXPECT_NE(signalled("trap : USR1",
                      "until [ -e rank-0.lost ] && [ -e rank-1.lost ]; do sleep 0.01; done"),
            0);
  EXPECT_EQ(left("rank-0.lost"), "\"torchrun\"");
  EXPECT_EQ(left("rank-1.lost"), "\"torchrun\"");
}

TEST_F(StandInTest, ARankOfAJobThatWasQueuedAgainFails) {
  const auto rank = testing::run_program({CHECKER_PROGRAM, "stand-in", "rank", "rank"},
                                         {"SLURM_RESTART_COUNT=1"}, folder_.path());
  EXPECT_EQ(rank.status, 1);
  EXPECT_EQ(left("rank.ready"), "nothing");
}

}  // namespace
}  // namespace checker
