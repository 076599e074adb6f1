// A torchrun is one that runs.
#include "jobs/torchrun.hpp"

#include <gmock/gmock.h>

#include "files.hpp"
#include "support/files.hpp"

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
  EXPECT_EQ(why_not_running(stand_in("exit 3")), "it says nothing");
}

TEST_F(TorchrunTest, IsAskedOnce) {
  const auto program = stand_in("echo asked >>'" + (folder_.path() / "asked").string() + "'");
  why_not_running(program);
  why_not_running(program);
  EXPECT_EQ(read_file(folder_.path() / "asked"), "asked\n");
}

}  // namespace
}  // namespace checker
