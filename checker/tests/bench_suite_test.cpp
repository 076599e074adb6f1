// ./workbook bench --all-gpus on a trainer of a second and on a script.
#include <gmock/gmock.h>

#include "process/capture.hpp"
#include "trainer_fixture.hpp"

namespace checker {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::TrainerTest;

class BenchSuite : public TrainerTest {
 protected:
  BenchSuite() {
    write_file(output() / "prints.py",
               "import sys\nopen(sys.argv[1], 'a').write('x')\n"
               "print('{\"tokens_per_s\": 7}')\n");
    write_file(
        output() / "rows.yaml",
        "- title: Both\n  about: Words.\n  columns: [tokens_per_s, steps, seconds]\n"
        "  rows:\n"
        "    - {label: script, python: " +
            script() + ", worlds: [1], arguments: [" + (output() / "calls").string() +
            "]}\n"
            "    - {label: trainer, trainer: \"09\", worlds: [2], arguments: [--task, points, "
            "--config, small, --max-steps, \"3\", --device, cpu]}\n");
  }
  std::string script() const {
    return fs::relative(output() / "prints.py", PROJECT_FOLDER).string();
  }
  Captured bench(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{CHECKER_PROGRAM, "bench",
                                       "--all-gpus",    "--no-build",
                                       "--rows",        (output() / "rows.yaml").string(),
                                       "--output",      (output() / "suite").string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return capture({.arguments = arguments, .environment = {}, .directory = {}});
  }
  size_t calls() const {
    return fs::exists(output() / "calls") ? read_file(output() / "calls").size() : 0;
  }
};

TEST_F(BenchSuite, MeasuresEachRowOnceAndGoesOn) {
  const auto stopped = bench({"--seconds", "0"});
  EXPECT_EQ(stopped.status, 1) << stopped.output;
  EXPECT_THAT(stopped.output, HasSubstr("2 rows still to measure"));
  EXPECT_EQ(calls(), 0u);
  for (int time = 0; time < 2; ++time) {
    const auto said = bench();
    EXPECT_EQ(said.status, 0) << said.output;
    EXPECT_EQ(calls(), 1u);
  }
  const auto page = read_file(output() / "suite" / "bench.md");
  EXPECT_THAT(page, HasSubstr("| script | Python | 1 | 7 |"));
  EXPECT_THAT(page, HasSubstr("| trainer | C++ | 2 |  | 3 |"));
  EXPECT_TRUE(fs::exists(output() / "suite/rows/both/trainer-2/monitor.html"));
  EXPECT_FALSE(fs::exists(output() / "suite/rows/both/trainer-2/output"));
}

TEST_F(BenchSuite, KeepsFailuresUntilTheyAreTriedAgain) {
  write_file(output() / "prints.py", "raise SystemExit('no GPU answers')\n");
  EXPECT_THAT(bench({"--table", "Both"}).output, HasSubstr("no GPU answers"));
  write_file(output() / "prints.py", "print('{\"tokens_per_s\": 8}')\n");
  EXPECT_EQ(bench().status, 1);
  EXPECT_EQ(bench({"--retry"}).status, 0);
  EXPECT_THAT(read_file(output() / "suite" / "bench.md"), HasSubstr("| 8 |"));
}

TEST_F(BenchSuite, SaysWhichTablesThereAre) {
  const auto said = bench({"--table", "nothing"});
  EXPECT_EQ(said.status, 2);
  EXPECT_THAT(said.output, HasSubstr("Both"));
}

}  // namespace
}  // namespace checker
