// A torchrun is one that runs.
#include "jobs/torchrun.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "files.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class TorchrunTest : public ::testing::Test {
 protected:
  fs::path stand_in(const std::string& script) const {
    const auto program = folder_.path() / "torchrun";
    write_file(program, "#!/bin/sh\n" + script + "\n");
    fs::permissions(program, fs::perms::owner_all);
    return program;
  }

  TemporaryFolder folder_;
};

TEST_F(TorchrunTest, RunsIfItGivesItsHelp) {
  EXPECT_EQ(why_not_running(stand_in("[ \"$1\" = --help ]")), std::nullopt);
}

TEST_F(TorchrunTest, ThatCannotStartIsQuoted) {
  const auto program =
      stand_in("printf 'Traceback\\nNo module named typing_extensions\\n' >&2; exit 1");
  EXPECT_EQ(why_not_running(program), "No module named typing_extensions");
}

TEST_F(TorchrunTest, ThatIsNotThereIsToldFromOneThatFails) {
  EXPECT_THAT(why_not_running(folder_.path() / "none").value_or(""), HasSubstr("is not there"));
  EXPECT_EQ(why_not_running(stand_in("exit 3")), "no output");
}

TEST_F(TorchrunTest, IsAskedOnce) {
  const auto program = stand_in("echo asked >>'" + (folder_.path() / "asked").string() + "'");
  why_not_running(program);
  why_not_running(program);
  EXPECT_EQ(read_file(folder_.path() / "asked"), "asked\n");
}

// Each runs() asks in a new process; how often the program itself was asked is counted.
class OwnTorchrunTest : public ::testing::Test {
 protected:
  OwnTorchrunTest() {
    project_.source = folder_.path();
    fs::create_directories(packages_);
    write_file(own_torchrun(project_), "#!/bin/sh\necho asked >>'" + asked_.string() + "'\n" +
                                           "cat '" + (packages_ / "typing").string() + "'\n");
    fs::permissions(own_torchrun(project_), fs::perms::owner_all);
    write_file(packages_ / "typing", "");
  }
  bool runs() const {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(why_own_not_running(project_) ? 1 : 0);
    int status = 0;
    ::waitpid(child, &status, 0);
    return status == 0;
  }
  size_t times_asked() const { return split_lines(trim(read_file(asked_))).size(); }
  // Files of the same moment have the same time.
  void make_older(const fs::path& path) const {
    fs::last_write_time(path, fs::last_write_time(path) - std::chrono::hours(1));
  }

  TemporaryFolder folder_;
  Project project_;
  fs::path packages_ = folder_.path() / ".venv" / "lib" / "python3.11" / "site-packages";
  fs::path asked_ = folder_.path() / "asked";
};

TEST_F(OwnTorchrunTest, ThatRanOnceIsNotAskedAgain) {
  make_older(packages_);
  make_older(own_torchrun(project_));
  EXPECT_TRUE(runs());
  EXPECT_TRUE(runs());
  EXPECT_EQ(times_asked(), 1U);
}

TEST_F(OwnTorchrunTest, WhosePackagesChangedIsAskedAgain) {
  make_older(own_torchrun(project_));
  EXPECT_TRUE(runs());
  make_older(folder_.path() / ".venv" / ".torchrun-runs");
  fs::remove(packages_ / "typing");
  EXPECT_FALSE(runs());
  EXPECT_FALSE(runs());  // What does not run is never remembered.
  EXPECT_EQ(times_asked(), 3U);
}

TEST_F(OwnTorchrunTest, ThatIsGoneDoesNotRun) {
  make_older(packages_);
  make_older(own_torchrun(project_));
  EXPECT_TRUE(runs());
  fs::remove(own_torchrun(project_));
  EXPECT_FALSE(runs());
}

}  // namespace
}  // namespace checker
