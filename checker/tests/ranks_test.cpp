// Groups of processes, tried with small shell scripts as ranks.
#include "process/ranks.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <map>

#include "files.hpp"
#include "process/trainer.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Observed {
  GroupResult result;
  std::map<size_t, std::vector<std::string>> lines;
  std::chrono::duration<double> time{};
};

Observed run(const std::vector<std::string>& scripts, std::chrono::milliseconds grace = 500ms) {
  std::vector<Command> commands;
  for (const auto& script : scripts) commands.push_back({{"sh", "-c", script}, {}, {}});
  Observed observed;
  RankOptions options;
  options.grace = grace;
  options.on_line = [&](size_t rank, bool, std::string_view line) {
    observed.lines[rank].emplace_back(line);
    return true;
  };
  const auto start = std::chrono::steady_clock::now();
  observed.result = run_ranks(commands, options);
  observed.time = std::chrono::steady_clock::now() - start;
  return observed;
}

// Whether a process is gone. A zombie that nobody has collected counts as there.
bool is_gone(const std::string& pid) { return ::kill(std::stoi(pid), 0) != 0 && errno == ESRCH; }

TEST(Ranks, AllSucceed) {
  const auto observed = run({"echo a; echo b >&2", "echo c", "true"});
  EXPECT_TRUE(observed.result.success());
  EXPECT_EQ(observed.result.status(), 0);
  EXPECT_THAT(observed.lines.at(0), ::testing::UnorderedElementsAre("a", "b"));
  EXPECT_THAT(observed.lines.at(1), ElementsAre("c"));
  EXPECT_EQ(describe_failure(observed.result), "");
}

TEST(Ranks, OneFailsAndTheOthersAreEnded) {
  const auto observed = run({"echo $$; sleep 60", "exit 3", "echo $$; sleep 60"});
  EXPECT_LT(observed.time, 10s);
  EXPECT_EQ(observed.result.first_failed, 1U);
  EXPECT_EQ(observed.result.status(), 3);
  EXPECT_TRUE(observed.result.ranks[0].ended_by_us);
  EXPECT_FALSE(observed.result.ranks[1].ended_by_us);
  EXPECT_EQ(observed.result.ranks[2].exit.signal, SIGTERM);
  EXPECT_THAT(describe_failure(observed.result), HasSubstr("rank 1 failed: exit status 3."));
  for (const auto& [rank, lines] : observed.lines) EXPECT_TRUE(is_gone(lines.at(0)));
}

TEST(Ranks, ASignalIsNamed) {
  const auto observed = run({"sleep 60", "kill -SEGV $$"});
  EXPECT_EQ(observed.result.first_failed, 1U);
  EXPECT_EQ(observed.result.status(), 128 + SIGSEGV);
  EXPECT_THAT(describe_failure(observed.result), HasSubstr("signal 11 (Segmentation fault)"));
}

TEST(Ranks, OneThatIgnoresTermIsKilledAfterTheGrace) {
  const auto observed =
      run({"trap '' TERM; echo $$; while :; do sleep 0.1; done", "sleep 0.3; exit 1"}, 400ms);
  EXPECT_GT(observed.time, 600ms);
  EXPECT_LT(observed.time, 10s);
  EXPECT_EQ(observed.result.ranks[0].exit.signal, SIGKILL);
  EXPECT_TRUE(is_gone(observed.lines.at(0).at(0)));
}

TEST(Ranks, OneThatEndsCleanlyOnTermMayDoSo) {
  const auto observed =
      run({"trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.05; done",
           "sleep 0.3; exit 1"},
          5s);
  EXPECT_LT(observed.time, 4s);
  EXPECT_THAT(observed.lines.at(0), ::testing::IsSupersetOf({"ready", "saved"}));
  EXPECT_TRUE(observed.result.ranks[0].exit.success());
}

TEST(Ranks, GrandchildrenEndWithTheirRank) {
  const auto observed = run({"sleep 60 & echo $!; sleep 60", "sleep 0.3; exit 1"});
  EXPECT_LT(observed.time, 10s);
  EXPECT_TRUE(is_gone(observed.lines.at(0).at(0)));
}

TEST(Ranks, GrandchildrenOfASuccessfulRankEndToo) {
  const auto observed = run({"sleep 60 & echo $!"});
  EXPECT_LT(observed.time, 10s);
  EXPECT_TRUE(observed.result.success());
  EXPECT_TRUE(is_gone(observed.lines.at(0).at(0)));
}

TEST(Ranks, GrandchildrenDoNotOutliveTheirRankUntilTheRunEnds) {
  const TemporaryFolder folder;
  const auto file = shell_quote((folder.path() / "pid").string());
  const auto observed =
      run({"sleep 60 & echo $! >" + file,
           "sleep 0.5; grep -qs '^State:.[RS]' /proc/$(cat " + file + ")/status && echo alive"});
  EXPECT_FALSE(observed.lines.contains(1));
}

TEST(Ranks, OneThatSlipsAwayIsFound) {
  const auto observed = run({"setsid sh -c 'echo $$; sleep 60' & sleep 0.5"});
  EXPECT_LT(observed.time, 10s);
  EXPECT_TRUE(is_gone(observed.lines.at(0).at(0)));
}

TEST(Ranks, OneThatSlipsAwayAndEndsIsCollectedAtOnce) {
  const auto observed =
      run({"p=$(sh -c 'sleep 0.1 >/dev/null & echo $!'); sleep 0.6\n"
           "if [ -e /proc/$p ]; then echo there; else echo gone; fi"});
  EXPECT_THAT(observed.lines.at(0), ElementsAre("gone"));
}

// The first process of a PID namespace ends after all others in it, and one of them is ours to
// collect.
TEST(Ranks, APidNamespaceThatOneSlippedIntoDoesNotBlock) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to make a PID namespace";
  const auto observed =
      run({"setsid unshare --pid --fork sleep 60 & outer=$!; sleep 0.2\n"
           "first=$(cat /proc/$outer/task/$outer/children)\n"
           "setsid nsenter --target $first --pid sleep 61 & entered=$!; sleep 0.2\n"
           "kill -9 $outer $entered; echo $first; sleep 0.2"});
  EXPECT_LT(observed.time, 10s);
  EXPECT_TRUE(observed.result.success());
  EXPECT_TRUE(is_gone(observed.lines.at(0).at(0)));
}

TEST(Ranks, NoChildIsLeft) {
  run({"setsid sleep 60 & sleep 60 & exit 1", "(sleep 60 &); sleep 60"});
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Ranks, ClosedDescriptorsDoNotConfuseIt) {
  const auto observed = run({"exec >&- 2>&-; sleep 0.3; exit 4"});
  EXPECT_EQ(observed.result.status(), 4);
}

TEST(Ranks, MegabytesOfOutputArriveWhole) {
  const std::string flood = "yes 0123456789abcdef | head -n 300000";
  const auto observed = run({flood, flood});
  for (const size_t rank : {0U, 1U}) {
    ASSERT_EQ(observed.lines.at(rank).size(), 300000U);
    for (const auto& line : observed.lines.at(rank)) ASSERT_EQ(line, "0123456789abcdef");
  }
}

TEST(Ranks, TheLastWordsOfADyingRankAreHeard) {
  const auto observed =
      run({"head -c 60000 /dev/zero | tr '\\0' x; echo; printf 'no end'; kill -KILL $$"});
  EXPECT_EQ(observed.lines.at(0).back(), "no end");
  EXPECT_EQ(observed.lines.at(0).front().size(), 60000U);
}

TEST(Ranks, AnOutputThatNobodyWantsEndsTheRun) {
  const Command command{{"yes"}, {}, {}};
  RankOptions options;
  size_t lines = 0;
  options.on_line = [&](size_t, bool, std::string_view) { return ++lines < 10; };
  const auto result = run_ranks({&command, 1}, options);
  EXPECT_TRUE(result.output_closed);
  EXPECT_EQ(result.status(), 1);
}

TEST(Ranks, ASignalToUsIsPassedOn) {
  const auto observed = run({"trap 'exit 0' INT; kill -INT $PPID; sleep 60", "sleep 60"});
  EXPECT_LT(observed.time, 10s);
  EXPECT_EQ(observed.result.interrupted_by, SIGINT);
  EXPECT_EQ(observed.result.status(), 128 + SIGINT);
}

TEST(Ranks, AMissingProgramIsNamedAndTheOthersAreEnded) {
  const std::vector<Command> commands{{{"sleep", "60"}, {}, {}}, {{"/no/such/program"}, {}, {}}};
  EXPECT_THAT(testing::error_of([&] { run_ranks(commands, {}); }),
              HasSubstr("Cannot start /no/such/program: No such file or directory"));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(Ranks, EnvironmentAndFolderAreThoseOfTheCommand) {
  const TemporaryFolder folder;
  const auto outcome = testing::run_program({"sh", "-c", "echo $HOME $RANK; pwd -P; cat"},
                                            {"HOME=/here", "RANK=5"}, folder.path());
  EXPECT_EQ(outcome.text, "/here 5\n" + std::filesystem::canonical(folder.path()).string() + "\n");
}

TEST(RankCommands, TellEachRankWhoItIs) {
  ::unsetenv("OMP_NUM_THREADS");
  const auto commands = rank_commands({"prog", 2, {"--x"}, "/tmp/a b/store"});
  ASSERT_EQ(commands.size(), 2U);
  EXPECT_THAT(commands[1].arguments, ElementsAre("prog", "--x"));
  EXPECT_THAT(commands[1].environment,
              ElementsAre("RANK=1", "LOCAL_RANK=1", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2",
                          "INIT_METHOD=file:///tmp/a b/store", "OMP_NUM_THREADS=1"));
  const auto alone = rank_commands({"prog", 1, {}, "/s"});
  EXPECT_THAT(alone[0].environment, ::testing::Not(::testing::Contains("OMP_NUM_THREADS=1")));
  ::setenv("OMP_NUM_THREADS", "4", 1);
  EXPECT_THAT(rank_commands({"prog", 2, {}, "/s"})[0].environment,
              ::testing::Not(::testing::Contains("OMP_NUM_THREADS=1")));
}

}  // namespace
}  // namespace checker
