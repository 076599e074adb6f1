#include "junit/junit.hpp"
#include "process/build.hpp"
#include "process/ranks.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "terminal/terminal.hpp"
#include "verbs/arguments.hpp"
#include "verbs/options.hpp"

namespace checker {

namespace {

int run_ctest(const Project& project, const std::filesystem::path& junit,
              const Arguments& arguments) {
  Command command;
  // The whole output of tests that pass, because a test that is skipped says there why.
  command.arguments = {project.ctest,
                       "--test-dir",
                       project.build.string(),
                       "-j5",
                       "--output-on-failure",
                       "--no-tests=error",
                       "--output-junit",
                       junit.string(),
                       "--test-output-size-passed",
                       "1000000"};
  command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
  RankOptions options;
  options.wiring = {.pipe_output = false, .pipe_error = false};
  const auto result = run_ranks({&command, 1}, options);
  return result.status();
}

void list_skipped(const TestReport& report) {
  if (report.tests == 0) return;
  if (report.skipped.empty()) {
    terminal::say("Nothing was skipped.");
    return;
  }
  terminal::say("Skipped, " + std::to_string(report.skipped.size()) + " of " +
                std::to_string(report.tests) + ":");
  for (const auto& test : report.skipped) terminal::say("  " + test.name + ": " + test.reason);
}

}  // namespace

int run_test(const Project& project, const Arguments& arguments) {
  if (has_option(arguments, "--help") || has_option(arguments, "-h")) {
    terminal::say(
        "Builds everything, runs all tests, and lists what was skipped and why.\n"
        "Usage:\n  ./workbook test [ctest options]\n\n"
        "For example: ./workbook test -R Sampler   only tests whose name contains Sampler\n"
        "             ./workbook test --sanitize   under the address and undefined sanitizers");
    return 0;
  }
  if (!std::filesystem::exists(project.build / "CTestTestfile.cmake")) {
    throw Error("This build folder has no tests. Fix: run ./workbook test, which configures them.");
  }
  const std::string all = "all";
  build_targets(project, {&all, 1}, "building everything");
  const auto junit = project.build / "tests.xml";
  std::error_code ignored;
  std::filesystem::remove(junit, ignored);
  const int status = run_ctest(project, junit, arguments);
  if (std::filesystem::exists(junit)) list_skipped(parse_junit(read_file(junit)));
  return status;
}

}  // namespace checker
