// Hand-ins that want something else than points. Each is shown to do its harm where the one
// protection that it aims at is off, and to do none in the box as it is.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "box_fixture.hpp"
#include "grade/worker.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

struct HostileHandIn {
  const char* name;
  const char* code;        ///< of a program; @ is a folder of the instructor's,
                           ///< # the number of a process of his
  bool Protections::*aim;  ///< what keeps it from doing harm
  const char* harm;        ///< what the worker says then
};

void PrintTo(const HostileHandIn& hand_in, std::ostream* out) { *out << hand_in.name; }

// They say by their exit status, 77, that they got what they wanted.
const HostileHandIn kHandIns[] = {
    {"ReadsTheSolution",
     "std::string text; std::ifstream(\"@/solution\") >> text; return text == \"answer\" ? 77 : 0;",
     &Protections::sight, "exit status 77"},
    {"ListsTheInstructorsFolder",
     "std::error_code no; return std::filesystem::directory_iterator(\"@\", no) != "
     "std::filesystem::directory_iterator() ? 77 : 0;",
     &Protections::sight, "exit status 77"},
    {"WritesIntoTheResults",
     "return std::ofstream(\"@/results\") << \"1000 points\" && "
     "std::filesystem::exists(\"@/solution\") ? 77 : 0;",
     &Protections::sight, "exit status 77"},
    {"ReadsASecretFromTheEnvironment", "return getenv(\"INSTRUCTORS_TOKEN\") ? 77 : 0;",
     &Protections::environment, "exit status 77"},
    {"LooksForOtherProcesses", "return std::filesystem::exists(\"/proc/#\") ? 77 : 0;",
     &Protections::processes, "exit status 77"},
    {"BecomesRoot", "return setuid(0) == 0 ? 77 : 0;", &Protections::rights, "exit status 77"},
    {"OpensMoreFilesThanItMay",
     "int opened = 0; while (opened < 300 && open(\"/dev/null\", O_RDONLY) >= 0) ++opened; "
     "return opened == 300 ? 77 : 0;",
     &Protections::limits, "exit status 77"},
    {"StartsMoreProcessesThanItMay",
     "int started = 0; for (; started < 600; ++started) { const auto pid = fork(); if (pid < 0) "
     "break; if (pid == 0) { pause(); } } return started == 600 ? 77 : 0;",
     &Protections::limits, "exit status 77"},
    {"WritesALargerFileThanItMay",
     "signal(SIGXFSZ, SIG_IGN); std::ofstream file(\"large\"); const std::string block(1 << 20, "
     "'x'); for (int i = 0; i < 100 && file; ++i) file << block << std::flush; return file ? 77 : "
     "0;",
     &Protections::limits, "exit status 77"},
};

constexpr const char* kProgram = R"(
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
int main() { %s }
)";

class HostileHandInTest : public testing::BoxedTest,
                          public ::testing::WithParamInterface<HostileHandIn> {
 protected:
  void SetUp() override {
    BoxedTest::SetUp();
    if (IsSkipped()) return;
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to let go of single protections";
    write_file(secret() / "solution", "answer");
    fs::permissions(secret(), fs::perms(0777));  // nothing but the box keeps anybody out
    auto code = replaced(GetParam().code, "@", secret().string());
    code = replaced(std::move(code), "#", std::to_string(::getpid()));
    const auto text = replaced(kProgram, "%s", code);
    write_file(folder_.path() / "hand-in" / "02.cpp", text);
    fs::create_directories(folder_.path() / "programs");
  }

  fs::path secret() const { return folder_.path() / "instructor"; }

  // What the worker says, in a process of its own as always.
  std::string judged(const Protections& protections) const {
    const TemporaryFolder work;
    fs::permissions(work.path(), fs::perms(0755));
    const auto said = folder_.path() / "said";
    const pid_t worker = ::fork();
    if (worker == 0) {
      ::setenv("INSTRUCTORS_TOKEN", "secret", 1);
      std::string all;
      grade::Task task{.hand_in = folder_.path() / "hand-in",
                       .archive = false,
                       .work = work.path(),
                       .programs = folder_.path() / "programs",
                       .hidden = {},
                       .done = {},
                       .user = 61'999,
                       .unsafe = false,
                       .protections = protections,
                       .worlds = {1},
                       .say = [&](const std::string& line) { all += line + "\n"; }};
      Project project;
      project.source = PROJECT_FOLDER;
      project.build = fs::path(PROGRAM_FOLDER).parent_path();
      int status = 1;
      try {
        status = grade::work_on(project, task) ? 0 : 1;
      } catch (const std::exception& error) {
        all += error.what();
      }
      write_file(said, all);
      ::_exit(status);
    }
    int status = 0;
    ::waitpid(worker, &status, 0);
    EXPECT_EQ(status, 0) << read_file(said);
    return read_file(said);
  }
};

TEST_P(HostileHandInTest, DoesNoHarm) {
  Protections without;
  without.*GetParam().aim = false;
  EXPECT_THAT(judged(without), HasSubstr(GetParam().harm));
  const auto contained = judged({});
  EXPECT_THAT(contained, Not(HasSubstr(GetParam().harm)));
  EXPECT_THAT(contained, HasSubstr("{\"finished\":true}"));
  EXPECT_THAT(contained, Not(HasSubstr("\"state\":\"done\"")));
}

INSTANTIATE_TEST_SUITE_P(All, HostileHandInTest, ::testing::ValuesIn(kHandIns),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace checker
