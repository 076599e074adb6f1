// The verb, and that nothing is left of a lab however it ends.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "files.hpp"
#include "lab/registry.hpp"
#include "lab_fixture.hpp"
#include "lab_traces.hpp"
#include "process/family.hpp"

namespace checker {
namespace {

using testing::daemon_of;
using testing::first_process_of;
using ::testing::HasSubstr;
using testing::LabTest;
using testing::namespaces_below;
using ::testing::Not;
using testing::run_in;

class LabEndTest : public LabTest {
 protected:
  // A lab that goes on by itself, with a job in it that slips away from everybody. Its namespaces.
  std::set<std::string> busy_lab() const {
    EXPECT_EQ(sh("$checker lab up busy").status, 0);
    run_in(Lab::find("busy"),
           "srun --nodes=2 bash -c 'setsid bash -c \"(exec sleep 600) >/dev/null 2>&1 &\"'");
    return namespaces_below(first_process_of("busy"));
  }
};

TEST_F(LabEndTest, NothingIsLeftAfterItsEnd) {
  auto lab = Lab::start({});
  const auto namespaces = namespaces_below(first_process_of(lab.name()));
  lab.end();
  expect_nothing_left(namespaces);
  EXPECT_THAT(testing::error_of([&] { lab.run({"true"}); }), HasSubstr("has ended"));
}

TEST_F(LabEndTest, NothingIsLeftAfterDown) {
  const auto namespaces = busy_lab();
  EXPECT_EQ(sh("$checker lab down").text, "  busy is down\n");
  expect_nothing_left(namespaces);
}

TEST_F(LabEndTest, NothingIsLeftWhenItsFirstProcessIsKilled) {
  const auto namespaces = busy_lab();
  ::kill(first_process_of("busy"), SIGKILL);
  expect_nothing_left(namespaces);
}

TEST_F(LabEndTest, NothingIsLeftWhenADaemonIsKilled) {
  for (const std::string daemon : {"slurmctld", "munged"}) {
    SCOPED_TRACE(daemon);
    const auto namespaces = busy_lab();
    const pid_t process = daemon_of("busy", daemon);
    ASSERT_GT(process, 0);
    ::kill(process, SIGKILL);
    expect_nothing_left(namespaces);
  }
}

TEST_F(LabEndTest, ANodeWhoseSlurmdIsKilledIsOff) {
  const auto lab = Lab::start({.name = "mine"});
  const auto slurmds = children_of(daemon_of("mine", "n1"));
  ASSERT_EQ(slurmds.size(), 1U);
  ::kill(*slurmds.begin(), SIGKILL);
  wait_until("n1 is off", [] { return daemon_of("mine", "n1") == 0; });
  lab.start_node("n1");
  EXPECT_EQ(run_in(lab, "srun --nodelist=n1 hostname"), "n1\n");
}

TEST_F(LabEndTest, ALabThatAProgramUsesIsEndedOnlyByName) {
  auto lab = Lab::start({.name = "used", .nodes = 1});
  EXPECT_EQ(sh("$checker lab down --all").text, "");
  EXPECT_EQ(sh("$checker lab down").text, "error: No lab is up. Fix: ./workbook lab up\n");
  EXPECT_THAT(sh("$checker lab status").text,
              HasSubstr("used  1 node, until the program that uses it ends\n  n1  idle\n"));
  EXPECT_EQ(sh("$checker lab down used").text, "  used is down\n");
  lab.end();
}

TEST_F(LabEndTest, NothingIsLeftWhenItsOwnerIsKilled) {
  const pid_t owner = ::fork();
  if (owner == 0) {
    try {
      const auto lab = Lab::start({.name = "owned"});
      std::ofstream(scratch() / "ready").close();
      for (;;) ::pause();
    } catch (const std::exception&) {
      ::_exit(1);
    }
  }
  wait_until("the lab is ready", [&] { return std::filesystem::exists(scratch() / "ready"); });
  const auto namespaces = namespaces_below(first_process_of("owned"));
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  expect_nothing_left(namespaces);
}

TEST_F(LabEndTest, NothingIsLeftWhenUpIsKilledOnTheWay) {
  stand_in("slurmd", "exec sleep 600");  // so that it does not get further
  const pid_t up = std::stoi(sh("$checker lab up half >/dev/null 2>&1 & echo $!").text);
  std::set<std::string> namespaces;
  wait_until("the lab and both nodes have their five each", [&] {
    if (const pid_t lab = first_process_of("half")) namespaces = namespaces_below(lab);
    return namespaces.size() >= 15;
  });
  ::kill(up, SIGKILL);
  expect_nothing_left(namespaces);
}

TEST_F(LabEndTest, WhatADeadLabLeftIsSweptByAnyCall) {
  busy_lab();
  const auto process = first_process_of("busy");
  ::kill(process, SIGKILL);
  wait_until("it is gone", [&] { return sh("$checker lab status").text.starts_with("No lab"); });
  EXPECT_FALSE(std::filesystem::exists(registry() / "busy"));
  EXPECT_EQ(sh("$checker lab shell -- true").text, "error: No lab is up. Fix: ./workbook lab up\n");
}

TEST_F(LabEndTest, ACommandDiesWithWhoeverWaitsForIt) {
  busy_lab();
  const auto script = "$checker lab shell -- sh -c 'echo $$ >" + (scratch() / "inner").string() +
                      "; exec sleep 599' & echo $!";
  const pid_t outer = std::stoi(sh(script).text);
  wait_until("the command runs", [&] { return std::filesystem::exists(scratch() / "inner"); });
  EXPECT_EQ(sh("$checker lab shell -- pgrep -xf 'sleep 599' | wc -l").text, "1\n");
  ::kill(outer, SIGKILL);
  wait_until("it is gone",
             [&] { return sh("$checker lab shell -- pgrep -xf 'sleep 599'").text.empty(); });
}

TEST_F(LabEndTest, TheVerbGoesThroughALabsLife) {
  const auto up = sh("$checker lab up mine --nodes 1 --gpus 2");
  EXPECT_EQ(up.status, 0) << up.text;
  EXPECT_THAT(up.text, HasSubstr("starting a lab of 1 node with 2 stand-in GPUs each: done"));
  EXPECT_THAT(up.text, HasSubstr("./workbook lab shell mine"));
  EXPECT_EQ(sh("$checker lab status").text, "mine  1 node\n  n1  idle\n");
  const auto shell = sh("cd / && $checker lab shell mine -- sh -c 'pwd; hostname; exit 7'");
  EXPECT_EQ(shell.status, 7);
  EXPECT_EQ(shell.text, "/\nctl\n");
  EXPECT_EQ(sh("$checker lab shell -- srun --gres=gpu:2 printenv CUDA_VISIBLE_DEVICES").text,
            "0,1\n");
  EXPECT_EQ(sh("$checker lab kill n1").text, "  n1 is off\n");
  EXPECT_EQ(sh("$checker lab start n1").text, "  n1 is back\n");
  EXPECT_THAT(sh("$checker lab kill n2").text, HasSubstr("mine has no node n2; its nodes are n1"));
  EXPECT_EQ(sh("$checker lab down mine").text, "  mine is down\n");
}

TEST_F(LabEndTest, LabsStartedAtTheSameMomentGetDifferentNames) {
  const auto up = sh("for i in 1 2 3; do $checker lab up --nodes 1 & done; wait");
  EXPECT_THAT(up.text, Not(HasSubstr("error")));
  EXPECT_EQ(sh("$checker lab status | grep -c idle").text, "3\n") << up.text;
  EXPECT_THAT(sh("$checker lab shell -- true").text,
              HasSubstr("Several labs are up: lab1, lab2, lab3. Name one of them."));
  EXPECT_THAT(sh("$checker lab shell lab9 -- true").text, HasSubstr("Unknown lab: lab9."));
  EXPECT_EQ(sh("$checker lab down --all").text, "  lab1 is down\n  lab2 is down\n  lab3 is down\n");
}

TEST_F(LabEndTest, WrongCommandLinesAreExplained) {
  EXPECT_THAT(sh("$checker lab").text, HasSubstr("Which action? up, down, status,"));
  EXPECT_THAT(sh("$checker lab stauts").text,
              HasSubstr("Unknown action: stauts. Did you mean 'status'?"));
  EXPECT_THAT(sh("$checker lab up a b").text, HasSubstr("\"b\" is an extra argument"));
  EXPECT_THAT(sh("$checker lab up A").text, HasSubstr("Bad name for a lab: A"));
  EXPECT_THAT(sh("$checker lab kill").text, HasSubstr("Which node?"));
  EXPECT_EQ(sh("$checker lab up --nodes 99").status, 1);
}

TEST_F(LabEndTest, WithoutRootOrSlurmOneSentenceSaysSo) {
  const auto call = "$checker lab up";
  const auto root = sh(std::string("setpriv --reuid=65534 --clear-groups ") + call);
  if (root.text.find("Permission denied") == root.text.npos) {
    EXPECT_EQ(root.status, 1);
    EXPECT_EQ(root.text,
              "error: A lab needs root, so job scripts cannot run under Slurm here. Fix: use "
              "sudo.\n");
  }
  // A machine without the programs in sbin, for this call alone.
  const auto slurm =
      sh(std::string("unshare --mount sh -c 'mount -t tmpfs none /usr/sbin && ") + call + "'");
  EXPECT_EQ(slurm.status, 1);
  EXPECT_THAT(slurm.text, HasSubstr("slurmctld, slurmd, munged"));
  EXPECT_THAT(slurm.text, HasSubstr("are missing, so job scripts cannot run under Slurm here. "
                                    "Fix: sudo apt-get install slurm-wlm munge"));
}

}  // namespace
}  // namespace checker
