// What a program in a box can reach, and what it can use up.
#include "box/box.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include "box_fixture.hpp"
#include "process/capture.hpp"
#include "support/files.hpp"

namespace checker {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class BoxTest : public testing::BoxedTest {
 protected:
  void SetUp() override {
    BoxedTest::SetUp();
    if (IsSkipped()) return;
    shown_ = folder_.path() / "shown";
    own_ = folder_.path() / "own";
    write_file(shown_ / "file", "what is shown");
    write_file(folder_.path() / "secret", "what is not");
    box_.hand_over(own_);
  }

  Captured run(const std::string& script, const BoxLimits& limits = {}) const {
    Command command{
        .arguments = {"sh", "-c", script}, .environment = {"SAID=so"}, .directory = own_};
    return capture(
        box_.wrap(command, {.read_only = {shown_}, .writable = {own_}, .scratch = own_}, limits));
  }

  fs::path shown_, own_;
  Box box_{{}};
};

TEST_F(BoxTest, SeesWhatItIsShownAndNothingElse) {
  EXPECT_THAT(run("cat " + (shown_ / "file").string()).output, HasSubstr("what is shown"));
  EXPECT_NE(run("cat " + (folder_.path() / "secret").string()).status, 0);
  EXPECT_THAT(run("ls " + folder_.path().string()).output, Not(HasSubstr("secret")));
  EXPECT_NE(run("ls /root /home/* /work /mnt /var /etc/passwd /etc/shadow").status, 0);
}

TEST_F(BoxTest, ASystemsFolderInTmpIsSeenBesideItsOwnFiles) {
  ASSERT_EQ(shown_.string().substr(0, 5), "/tmp/");
  write_file(shown_ / "hidden" / "solution", "what is hidden");
  const Box box({.system = {shown_}, .hidden = {shown_ / "hidden"}});
  Command command{.arguments = {"sh", "-c", "cat $1/file; cat $1/hidden/*; echo mine > /tmp/own",
                                "sh", shown_.string()},
                  .environment = {},
                  .directory = own_};
  const auto said =
      capture(box.wrap(command, {.read_only = {}, .writable = {own_}, .scratch = own_}, {}));
  EXPECT_EQ(said.status, 0) << said.output;
  EXPECT_THAT(said.output, HasSubstr("what is shown"));
  EXPECT_THAT(said.output, Not(HasSubstr("what is hidden")));
  EXPECT_EQ(read_file(own_ / "own"), "mine\n");
}

TEST_F(BoxTest, WritesWhereItMayAndNowhereElse) {
  EXPECT_EQ(run("echo mine > file && echo mine > /tmp/other && echo mine > /dev/shm/third").status,
            0);
  EXPECT_EQ(read_file(own_ / "file"), "mine\n");
  for (const auto& place : {(shown_ / "file").string(), std::string("/usr/file"),
                            std::string("/file"), std::string("/dev/file"),
                            std::string("/etc/file"), std::string("/proc/sys/vm/swappiness")}) {
    EXPECT_NE(run("echo spoilt > " + place).status, 0) << place;
  }
  EXPECT_EQ(read_file(shown_ / "file"), "what is shown");
}

TEST_F(BoxTest, HasItsOwnEnvironmentAndNoneOfOurs) {
  ::setenv("OUR_SECRET", "token", 1);
  const auto said = run("env; cat /proc/*/environ").output;
  ::unsetenv("OUR_SECRET");
  EXPECT_THAT(said, HasSubstr("SAID=so"));
  EXPECT_THAT(said, Not(HasSubstr("token")));
}

TEST_F(BoxTest, SeesAndReachesNoProcessOfOurs) {
  const auto ours = std::to_string(::getpid());
  EXPECT_NE(run("kill -0 " + ours).status, 0);
  EXPECT_THAT(run("ls /proc").output, Not(HasSubstr("\n" + ours + "\n")));
}

TEST_F(BoxTest, HasNoRights) {
  const auto status = run("cat /proc/self/status").output;
  EXPECT_THAT(status, HasSubstr("CapEff:\t0000000000000000"));
  EXPECT_THAT(status, HasSubstr("CapBnd:\t0000000000000000"));
  EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1"));
}

TEST_F(BoxTest, WhateverItStartedEndsWithIt) {
  EXPECT_EQ(run("setsid sh -c 'sleep 777.5 & sleep 777.5' & (sleep 777.5 &) ; exit 0").status, 0);
  const auto left = capture({.arguments = {"sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"},
                             .environment = {},
                             .directory = {}});
  EXPECT_THAT(left.output, Not(HasSubstr("sleep 777.5")));
}

TEST_F(BoxTest, ItsLimitsHold) {
  EXPECT_NE(run("head -c 3000000 /dev/zero > file", {.file = 1U << 20}).status, 0);
  EXPECT_EQ(fs::file_size(own_ / "file"), 1U << 20);
  EXPECT_NE(run("for i in 1 2 3 4 5 6 7 8 9; do sleep 5 & done; exit 0", {.processes = 5}).output,
            "");
  EXPECT_THAT(run("ulimit -n", {.descriptors = 77}).output, HasSubstr("77"));
  EXPECT_EQ(
      outcome_in_box({.code = run("while :; do :; done", {.processor_seconds = 1}).status}).signal,
      SIGKILL);
}

TEST_F(BoxTest, HowItEndedIsTold) {
  EXPECT_EQ(run("exit 3").status, 3);
  EXPECT_EQ(outcome_in_box({.code = run("kill -SEGV $$").status}).signal, SIGSEGV);
  EXPECT_EQ(outcome_in_box({.code = 3}).code, 3);
}

TEST_F(BoxTest, WhatIsHiddenIsNotSeenEvenInAFolderOfTheSystem) {
  const Box hiding({.system = {folder_.path()}, .hidden = {folder_.path() / "own"}});
  write_file(folder_.path() / "own" / "solution", "the solution");
  const Command look{.arguments = {"cat", (folder_.path() / "own" / "solution").string()},
                     .environment = {},
                     .directory = {}};
  EXPECT_EQ(capture(Box({.system = {folder_.path()}}).wrap(look, {})).status, 0);
  EXPECT_NE(capture(hiding.wrap(look, {})).status, 0);
}

}  // namespace
}  // namespace checker
