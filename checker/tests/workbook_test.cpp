// The script ./workbook and its set-up, on machines made of stand-ins: a folder of programs is all
// that the script finds in its PATH.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>

#include "files.hpp"
#include "pty.hpp"
#include "support/text.hpp"

namespace checker {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class WorkbookTest : public ::testing::Test {
 protected:
  WorkbookTest() {
    fs::create_directories(project() / "checker");
    fs::copy_file(PROJECT_FOLDER "/workbook", project() / "workbook");
    fs::copy_file(PROJECT_FOLDER "/checker/set_up.sh", project() / "checker/set_up.sh");
    fs::create_directories(tools());
    for (const std::string tool :
         {"awk", "bash", "cat", "df", "dirname", "env", "grep", "head", "id", "ln", "mkdir", "rm",
          "sed", "sh", "sort", "tac", "tail", "touch"}) {
      const auto found = testing::run_program({"sh", "-c", "command -v " + tool}).text;
      fs::create_symlink(trim(found), tools() / tool);
    }
    stand_in("clang++", "case $1 in --version) echo clang;; -dump*) echo 14.0.6;; esac");
    stand_in("ninja", "");
    // Configuring leaves what CMake leaves; building makes a checker that repeats its arguments.
    stand_in("cmake", R"(echo "$@" >>"$0.calls"
case "$*" in
  --version) echo cmake version 3.25.1 ;;
  *--preset*) b=$2/build/$(echo "$*" | sed 's/.*--preset \([a-z]*\).*/\1/'); mkdir -p "$b"
    echo "LIBTORCH_ROOT:PATH=$TEST_TORCH" >"$b/CMakeCache.txt"; touch "$b/build.ninja" ;;
  --build*) mkdir -p "$2/bin"; printf '#!/bin/sh\necho checker "$@"\n' >"$2/bin/checker"; chmod +x "$2/bin/checker" ;;
esac)");
    fs::create_symlink("/bin/chmod", tools() / "chmod");
    make_torch(folder_.path() / "libs/torch", "2, 11, 0");
    stand_in("python3", "exit 1");
  }

  fs::path project() const { return folder_.path() / "my course"; }
  fs::path tools() const { return folder_.path() / "tools"; }
  fs::path libraries() const { return folder_.path() / "libs"; }

  void stand_in(const std::string& name, const std::string& script) const {
    write_file(tools() / name, "#!/bin/sh\n" + script + "\n");
    fs::permissions(tools() / name, fs::perms::owner_all);
  }

  // numbers: of the version, "2, 11, 0"
  static void make_torch(const fs::path& folder, const std::string& numbers) {
    write_file(folder / "lib/libtorch_cpu.so", "");
    std::string header;
    std::string_view rest = numbers;
    for (const std::string part : {"MAJOR", "MINOR", "PATCH"}) {
      const auto comma = std::min(rest.find(", "), rest.size());
      header += "#define TORCH_VERSION_" + part + " " + std::string(rest.substr(0, comma)) + "\n";
      rest.remove_prefix(std::min(comma + 2, rest.size()));
    }
    write_file(folder / "include/torch/headeronly/version.h", header);
  }

  // A python3 that makes a .venv whose pip runs this script.
  void use_pip(const std::string& pip) const {
    write_file(folder_.path() / "pip", "#!/bin/sh\n" + pip + "\n");
    fs::permissions(folder_.path() / "pip", fs::perms::owner_all);
    stand_in("python3", R"(case "$*" in
  *find_spec*) [ -n "$TEST_PYTHON_TORCH" ] && echo "$TEST_PYTHON_TORCH" ;;
  -c*) exit 0 ;;
  "-m venv"*) mkdir -p "$3/bin"; ln -s "$TEST_PIP" "$3/bin/python3" ;;
esac)");
  }

  testing::Outcome workbook(std::vector<std::string> arguments,
                            std::vector<std::string> environment = {}) const {
    arguments.insert(arguments.begin(), {"/bin/bash", (project() / "workbook").string()});
    for (const auto& variable : machine()) environment.insert(environment.begin(), variable);
    return testing::run_program(arguments, environment);
  }

  // What the script shows on a terminal if nothing follows its name.
  std::string alone_on_a_terminal() const {
    testing::Terminal terminal(24, 100);
    terminal.run([this] {
      auto variables = machine();
      for (auto& variable : variables) ::putenv(variable.data());
      const auto script = (project() / "workbook").string();
      ::execl("/bin/bash", "bash", script.c_str(), nullptr);
      return 1;
    });
    EXPECT_EQ(terminal.end(), 0);
    return terminal.wait_for("\n");
  }

  std::vector<std::string> machine() const {
    return {"PATH=" + tools().string(), "TEST_TORCH=" + (libraries() / "torch").string(),
            "TEST_PIP=" + (folder_.path() / "pip").string(), "CXX="};
  }

  std::string with_torch() const { return "CMAKE_PREFIX_PATH=" + libraries().string(); }
  std::string calls() const { return read_file(tools() / "cmake.calls"); }

 private:
  TemporaryFolder folder_;
};

TEST_F(WorkbookTest, SetsUpOnceAndHandsOver) {
  const auto first = workbook({"run", "02", "--", "--cuda"}, {with_torch()});
  EXPECT_EQ(first.status, 0);
  EXPECT_THAT(first.text, HasSubstr("  building the checker: done"));
  EXPECT_THAT(first.text, HasSubstr("\nchecker run 02 -- --cuda\n"));
  EXPECT_THAT(calls(), HasSubstr("--preset cpu"));
  EXPECT_THAT(calls(), HasSubstr("-DCMAKE_CXX_COMPILER=clang++"));
  fs::remove(tools() / "cmake.calls");
  EXPECT_EQ(workbook({"list"}).text, "checker list\n");
  EXPECT_THAT(calls(), Not(HasSubstr("--preset")));
  EXPECT_TRUE(fs::is_symlink(project() / "build/compile_commands.json"));
}

TEST_F(WorkbookTest, TestsAreConfiguredWhenTheyAreAskedFor) {
  workbook({"list"}, {with_torch()});
  EXPECT_THAT(calls(), Not(HasSubstr("WORLDSIZE_TESTS")));
  const auto test = workbook({"test"}, {with_torch()});
  EXPECT_EQ(test.status, 0) << test.text;
  EXPECT_THAT(calls(), HasSubstr("-DWORLDSIZE_TESTS=ON"));
  EXPECT_EQ(workbook({"list"}).text, "checker list\n") << "a build with tests does for all verbs";
}

// On a machine without a GPU LibTorch comes without most of its libraries, and torchrun needs some.
TEST_F(WorkbookTest, PrefetchBringsWhatTorchrunLacksAndNoMore) {
  use_pip(R"(echo "$@" >>"$0.calls"
case "$*" in
  *typing_extensions*) printf '#!/bin/sh\n' >"$(dirname "$0")/torchrun"; chmod +x "$(dirname "$0")/torchrun" ;;
esac)");
  const auto outcome = workbook({"prefetch"}, {with_torch()});
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  const auto calls = read_file(project() / ".venv/bin/python3.calls");
  EXPECT_THAT(calls, HasSubstr("--no-deps torch==2.11.0"));
  EXPECT_THAT(calls, HasSubstr("typing_extensions cuda-toolkit[cublas"));
  EXPECT_THAT(calls, Not(HasSubstr("numpy")));
  // Once it runs, there is nothing to bring.
  EXPECT_EQ(workbook({"prefetch"}, {with_torch()}).status, 0);
  EXPECT_EQ(read_file(project() / ".venv/bin/python3.calls"), calls);
}

TEST_F(WorkbookTest, ATorchrunThatStillDoesNotRunIsQuoted) {
  use_pip(R"(case "$*" in
  *typing_extensions*) printf '#!/bin/sh\necho no libcufile; exit 1\n' >"$(dirname "$0")/torchrun"; chmod +x "$(dirname "$0")/torchrun" ;;
esac)");
  const auto outcome = workbook({"prefetch"}, {with_torch()});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.text, HasSubstr("error: torchrun does not start: no libcufile Fix: delete "));
}

TEST_F(WorkbookTest, TheBuildIsChosenByOption) {
  EXPECT_EQ(workbook({"list", "--sanitize"}, {with_torch()}).status, 0);
  EXPECT_THAT(calls(), HasSubstr("--preset sanitize"));
}

TEST_F(WorkbookTest, HelpNeedsNothing) {
  EXPECT_THAT(workbook({}).text, HasSubstr("Usage: ./workbook COMMAND"));
  EXPECT_THAT(workbook({"start", "--help"}).text, HasSubstr("Usage: ./workbook COMMAND"));
  EXPECT_FALSE(fs::exists(project() / "build"));
}

TEST_F(WorkbookTest, AloneOnATerminalItWatchesOnceItIsSetUp) {
  EXPECT_THAT(alone_on_a_terminal(), HasSubstr("Usage: ./workbook COMMAND"));
  workbook({"list"}, {with_torch()});
  EXPECT_THAT(alone_on_a_terminal(), HasSubstr("checker watch\r\n"));
  EXPECT_THAT(workbook({}).text, HasSubstr("Usage: ./workbook COMMAND"));
}

TEST_F(WorkbookTest, AnOldCompilerIsRefused) {
  stand_in("old++", "case $1 in -dump*) echo 9.4.0;; --version) echo g++;; esac");
  const auto old = workbook({"list"}, {with_torch(), "CXX=old++"});
  EXPECT_EQ(old.status, 1);
  EXPECT_THAT(old.text, HasSubstr("error: old++ is not a usable C++20 compiler"));
  EXPECT_THAT(old.text, HasSubstr("Fix: "));
}

TEST_F(WorkbookTest, AMachineWithoutACompilerIsToldWhatToInstall) {
  fs::remove(tools() / "clang++");
  EXPECT_THAT(workbook({"list"}, {with_torch()}).text, HasSubstr("sudo apt-get install clang"));
}

TEST_F(WorkbookTest, AFullDiskIsNoticedBefore) {
  fs::remove(tools() / "df");
  stand_in("df", "echo head; echo fs 100 99 1048576 99% /");
  const auto full = workbook({"list"}, {with_torch()});
  EXPECT_EQ(full.status, 1);
  EXPECT_THAT(full.text, HasSubstr("error: 2 GB of free disk space are needed in "));
  EXPECT_THAT(full.text, HasSubstr("but only 1 are free. Fix: "));
}

TEST_F(WorkbookTest, WithoutANetworkItSaysSoAndRepairsItselfLater) {
  use_pip("echo 'Temporary failure in name resolution'; exit 1");
  const auto without = workbook({"list"});
  EXPECT_EQ(without.status, 1);
  EXPECT_THAT(without.text,
              HasSubstr("failed: no network. Fix: run this again with a network; or"));
  use_pip("exit 0");
  EXPECT_THAT(workbook({"list"}).text, HasSubstr("\nchecker list\n"));
}

TEST_F(WorkbookTest, ADiskThatFillsUpMeanwhileIsNamed) {
  use_pip("echo 'OSError: [Errno 28] No space left on device'; exit 1");
  EXPECT_THAT(workbook({"list"}).text, HasSubstr("error: the disk is full. Fix: "));
}

TEST_F(WorkbookTest, AnotherTorchIsLeftAloneAndTheRightOneInstalled) {
  use_pip("echo \"$@\" >>\"$0.calls\"");
  make_torch(libraries() / "old/torch", "2, 5, 1");
  const auto old =
      workbook({"list"}, {"TEST_PYTHON_TORCH=" + (libraries() / "old/torch").string()});
  EXPECT_EQ(old.status, 0) << old.text;
  EXPECT_THAT(old.text, HasSubstr("python3's torch is not LibTorch 2.11.0"));
  EXPECT_THAT(read_file(project() / ".venv/bin/python3.calls"),
              HasSubstr("--no-deps torch==2.11.0"));
}

TEST_F(WorkbookTest, PythonsOwnTorchIsUsedIfItIsTheRightOne) {
  use_pip("exit 1");
  const auto theirs = workbook({"list"}, {"TEST_PYTHON_TORCH=" + (libraries() / "torch").string()});
  EXPECT_EQ(theirs.status, 0) << theirs.text;
  EXPECT_FALSE(fs::exists(project() / ".venv"));
}

TEST_F(WorkbookTest, AHalfMadeVenvIsMadeAnew) {
  use_pip("exit 0");
  write_file(project() / ".venv/bin/leftover", "");
  EXPECT_EQ(workbook({"list"}).status, 0);
  EXPECT_FALSE(fs::exists(project() / ".venv/bin/leftover"));
}

TEST_F(WorkbookTest, AHalfConfiguredBuildIsConfiguredAfresh) {
  write_file(project() / "build/cpu/CMakeCache.txt", "");
  EXPECT_EQ(workbook({"list"}, {with_torch()}).status, 0);
  EXPECT_THAT(calls(), HasSubstr("--fresh"));
}

TEST_F(WorkbookTest, ALostLibTorchIsFoundAgain) {
  workbook({"list"}, {with_torch()});
  fs::rename(libraries() / "torch", libraries() / "elsewhere");
  make_torch(libraries() / "new/torch", "2, 11, 0");
  fs::remove(tools() / "cmake.calls");
  workbook({"list"}, {"CMAKE_PREFIX_PATH=" + (libraries() / "new").string()});
  EXPECT_THAT(calls(), HasSubstr("--preset cpu"));
}

TEST_F(WorkbookTest, WithoutRootTheMissingPackagesAreNamedAndItGoesOn) {
  fs::remove(tools() / "id");
  stand_in("id", "echo 1000");
  stand_in("apt-get", "exit 1");
  stand_in("dpkg-query", "exit 1");
  const auto without = workbook({"list"}, {with_torch()});
  EXPECT_EQ(without.status, 0);
  EXPECT_THAT(without.text,
              HasSubstr("only root can install them: sudo apt-get install clang cmake"));
}

}  // namespace
}  // namespace checker
