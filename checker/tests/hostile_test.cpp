// Programs that do what no exercise asks for. Each gets a finding in time, and nothing of it is
// left.
#include <gmock/gmock.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is POSIX's

#include "edited.hpp"
#include "support/files.hpp"

namespace checker {
namespace {

using testing::Eq;

struct Hostile {
  const char* name;
  const char* code;     ///< after the options are read
  const char* finding;  ///< what it must be told; "" where it does no harm
  double seconds;       ///< within which, build aside
};

void PrintTo(const Hostile& hostile, std::ostream* out) { *out << hostile.name; }

const Hostile kHostile[] = {
    {"Crashes", "std::abort();", "dies", 15},
    {"DiesOfASignal", "raise(SIGSEGV);", "dies", 15},
    {"LeavesAtOnce", "std::exit(0);", "no_process_group", 15},
    {"LeavesWithoutAWord", "_exit(0);", "no_process_group", 15},
    {"PrintsMegabytes",
     "for (int i = 0; i < 200000; ++i) std::puts(std::string(100, 'x').c_str());",
     "other_ranks_print", 25},
    {"Sleeps", "sleep(1000);", "no_process_group", 20},
    {"IgnoresBeingToldToEnd", "signal(SIGTERM, SIG_IGN); while (true) pause();", "no_process_group",
     20},
    {"RunsInCircles", "signal(SIGTERM, SIG_IGN); for (volatile int i = 0;; i = i + 1) {}",
     "no_process_group", 40},
    {"WritesAHugeFile",
     "{ std::ofstream file(\"huge\"); const std::string block(1 << 20, 'x'); "
     "for (int i = 0; i < 200; ++i) file << block; }",
     "dies", 20},
    {"ClosesAllDescriptors", "for (int i = 0; i < 1024; ++i) close(i);", "nobody_prints", 25},
    {"LeavesAProcessBehind",
     "if (fork() == 0) { setsid(); std::ofstream(\"/tmp/\" + "
     "std::string(std::getenv(\"HOSTILE_MARK\"))) << getpid(); sleep(1000); }",
     "", 25},
};

class HostileProgram : public testing::TestWithParam<Hostile> {};

TEST_P(HostileProgram, GetsAFindingInTime) {
  const auto mark = "hostile-" + std::to_string(getpid());
  setenv("HOSTILE_MARK", mark.c_str(), 1);
  const auto [report, seconds] = judge_edited({std::string("hostile_") + GetParam().name, "06",
                                               "  tasks::apply(options);\n", GetParam().code},
                                              {1, 2, 3});
  const auto* first = report.first_finding();
  EXPECT_THAT(first ? first->id : "", Eq(GetParam().finding))
      << (first ? first->what + " " + testing::PrintToString(first->evidence) : "");
  EXPECT_EQ(report.passed(), std::string(GetParam().finding).empty());
  EXPECT_LT(seconds, 5 * GetParam().seconds);  // the machine may be busy
  const auto left = std::filesystem::path("/tmp") / mark;
  if (std::filesystem::exists(left)) {
    EXPECT_NE(kill(std::stoi(read_file(left)), 0), 0) << "a process is left";
    std::filesystem::remove(left);
  }
}

INSTANTIATE_TEST_SUITE_P(All, HostileProgram, testing::ValuesIn(kHostile),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace checker
