// Programs that do what no exercise asks for. Each gets a finding, long before c10d's time-outs end
// it, and nothing of it is left.
#include <gmock/gmock.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is POSIX's

#include "edited.hpp"
#include "support/files.hpp"

namespace checker {
namespace {

using ::testing::Eq;

struct Hostile {
  const char* name;
  const char* code;     ///< after the options are read
  const char* finding;  ///< what it must be told; "" where it does no harm
};

void PrintTo(const Hostile& hostile, std::ostream* out) { *out << hostile.name; }

const Hostile kHostile[] = {
    {"Crashes", "std::abort();", "dies"},
    {"DiesOfASignal", "raise(SIGSEGV);", "dies"},
    {"LeavesAtOnce", "std::exit(0);", "no_process_group"},
    {"LeavesWithoutAWord", "_exit(0);", "no_process_group"},
    {"PrintsMegabytes",
     "for (int i = 0; i < 200000; ++i) std::puts(std::string(100, 'x').c_str());",
     "other_ranks_print"},
    {"Sleeps", "sleep(1000);", "no_process_group"},
    {"IgnoresBeingToldToEnd", "signal(SIGTERM, SIG_IGN); while (true) pause();",
     "no_process_group"},
    {"RunsInCircles", "signal(SIGTERM, SIG_IGN); for (volatile int i = 0;; i = i + 1) {}",
     "no_process_group"},
    {"WritesAHugeFile",
     "{ std::ofstream file(\"huge\"); const std::string block(1 << 20, 'x'); "
     "for (int i = 0; i < 200; ++i) file << block; }",
     "dies"},
    {"ClosesAllDescriptors", "for (int i = 0; i < 1024; ++i) close(i);", "nobody_prints"},
    {"LeavesAProcessBehind",
     "if (fork() == 0) { setsid(); std::ofstream(\"/tmp/\" + "
     "std::string(std::getenv(\"HOSTILE_MARK\"))) << getpid(); sleep(1000); }",
     ""},
};

// Only the log's head is written: so many records no longer fitted.
constexpr const char* kOverflow =
    "{ const int log = open(std::getenv(\"WORLDSIZE_RECORD\"), O_WRONLY); "
    "const uint64_t dropped = 7; if (pwrite(log, &dropped, sizeof dropped, 136) != 8) abort(); }";

Report judge(const std::string& name) {
  static EditedSolutions solutions = [] {
    std::vector<EditedSolution> all;
    const auto add = [&](const std::string& other, const char* code) {
      all.push_back({"hostile_" + other, "06", "  tasks::apply(options);\n", code});
    };
    for (const auto& hostile : kHostile) add(hostile.name, hostile.code);
    add("Overflow", kOverflow);
    return EditedSolutions(all);
  }();
  return solutions.judge("hostile_" + name, {2});
}

class HostileProgram : public ::testing::TestWithParam<Hostile> {};

TEST_P(HostileProgram, GetsAFinding) {
  const auto mark = "hostile-" + std::to_string(getpid());
  setenv("HOSTILE_MARK", mark.c_str(), 1);
  const auto report = judge(GetParam().name);
  const auto* first = report.first_finding();
  EXPECT_THAT(first ? first->id : "", Eq(GetParam().finding))
      << (first ? first->what + " " + testing::PrintToString(first->evidence) : "");
  EXPECT_EQ(report.passed(), std::string(GetParam().finding).empty());
  const auto left = std::filesystem::path("/tmp") / mark;
  if (std::filesystem::exists(left)) {
    EXPECT_NE(kill(std::stoi(read_file(left)), 0), 0) << "a process is left";
    std::filesystem::remove(left);
  }
}

// Evidence that is not whole proves nothing, neither for the program nor against it.
TEST(HostileLog, ThatOverflowedIsNotJudged) {
  const auto report = judge("Overflow");
  EXPECT_EQ(report.first_finding(), nullptr);
  ASSERT_FALSE(report.verdicts.empty());
  for (const auto& verdict : report.verdicts) {
    EXPECT_EQ(verdict.state, State::not_judged);
    EXPECT_TRUE(verdict.untried);
    EXPECT_THAT(verdict.reason, ::testing::HasSubstr("7 records are missing"));
  }
}

INSTANTIATE_TEST_SUITE_P(All, HostileProgram, testing::ValuesIn(kHostile),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace checker
