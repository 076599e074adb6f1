#include "bench/suite.hpp"

#include <gmock/gmock.h>

#include "course/course.hpp"
#include "files.hpp"
#include "support/error.hpp"
#include "support/files.hpp"

namespace checker::bench {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

std::vector<size_t> worlds_of(const SuiteTable& table, const std::string& label) {
  std::vector<size_t> worlds;
  for (const auto& row : table.rows) {
    if (row.label == label) worlds.push_back(row.ranks);
  }
  return worlds;
}

class SuiteFile : public ::testing::Test {
 protected:
  fs::path write(const std::string& rows) const {
    const auto file = folder_.path() / "bench.yaml";
    write_file(file,
               "- title: A table\n  about: Words.\n  columns: [step_ms, tokens_per_s]\n"
               "  compare: tokens_per_s\n  rows:\n" +
                   rows);
    return file;
  }
  std::string error_of(const std::string& rows) const {
    try {
      read_suite(write(rows), 2);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }
  TemporaryFolder folder_;
};

TEST_F(SuiteFile, RowsAreMeasuredOnDoublingNumbersOfGpusAndOnAll) {
  const auto file = write(
      "    - {label: each, program: step_time}\n"
      "    - {label: some, program: step_time, worlds: [2, 8]}\n"
      "    - {label: most, program: step_time, worlds: most}\n");
  const auto table = read_suite(file, 6).front();
  EXPECT_THAT(worlds_of(table, "each"), ElementsAre(1, 2, 4, 6));
  EXPECT_THAT(worlds_of(table, "some"), ElementsAre(2));
  EXPECT_THAT(worlds_of(table, "most"), ElementsAre(6));
  EXPECT_THAT(worlds_of(read_suite(file, 1).front(), "each"), ElementsAre(1));
}

TEST_F(SuiteFile, MistakesAreNamedWithTheirPlace) {
  EXPECT_THAT(error_of("    - {label: a, program: p, python: q}\n"), HasSubstr("bench.yaml:6"));
  EXPECT_THAT(error_of("    - {label: a, program: p}\n    - {label: A, program: p}\n"),
              HasSubstr("another row"));
  EXPECT_THAT(error_of("    - {label: a, program: p, worlds: many}\n"), HasSubstr("worlds"));
  EXPECT_THAT(error_of("    - {label: a, program: p, word: 1}\n"), HasSubstr("unknown key word"));
  EXPECT_THAT(error_of("    - {label: a, program: p, samples: few}\n"), HasSubstr("bench.yaml:6"));
}

// What the chapters list can run: programs and scripts are there, and labels tell rows apart.
TEST(SuiteOfTheCourse, NamesProgramsThatThereAre) {
  const fs::path project = PROJECT_FOLDER, chapters = project / "checker" / "chapters";
  const auto course = load_course(chapters);
  const auto tables = read_suites(chapters, 8);
  EXPECT_GE(tables.size(), 6u);
  for (const auto& table : tables) {
    EXPECT_THAT(table.rows, Not(IsEmpty())) << table.title;
    for (const auto& row : table.rows) {
      if (row.launch == Launch::python) {
        EXPECT_TRUE(fs::exists(project / row.program)) << row.program;
      } else if (row.launch == Launch::trainer) {
        EXPECT_NO_THROW(course.step(row.program)) << row.program;
      }
    }
  }
}

TEST(SuiteFigures, AreAllNumbersOfAnObject) {
  const auto figures = figures_in(R"({"name": "x", "ranks": 2, "step_ms": 1.5})");
  EXPECT_EQ(figures.at("step_ms"), 1.5);
  EXPECT_THAT(figures, SizeIs(2));
  EXPECT_EQ(figures_in(R"({"benchmarks": [{"step_ms": 2}]})").at("step_ms"), 2);
  EXPECT_THROW(figures_in("no object"), Error);
  EXPECT_THROW(figures_in("{}"), Error);
}

SuiteTable two_worlds() {
  const SuiteRow ours{.label = "ours", .launch = Launch::trainer, .group = "bf16"};
  SuiteTable table{.title = "A table",
                   .about = "Words.",
                   .columns = {"step_ms", "tokens_per_s"},
                   .compare = "tokens_per_s",
                   .rows = {ours, ours, ours, ours}};
  for (size_t i = 0; i < 4; ++i) table.rows[i].ranks = 1 + i % 2;
  for (size_t i = 2; i < 4; ++i) {
    table.rows[i].label = "theirs";
    table.rows[i].launch = Launch::python;
  }
  return table;
}

Measured rate(double tokens_per_s) { return {.figures = {{"tokens_per_s", tokens_per_s}}}; }

TEST(SuiteTables, CompareWithOneRankAndWithPythonsBest) {
  const auto lines =
      suite_lines(two_worlds(), {rate(100), rate(180), rate(50), std::nullopt}, true);
  ASSERT_THAT(lines, SizeIs(6));
  EXPECT_EQ(lines[2], "| ours | C++ | 1 |  | 100 |  | 2.00 times |");
  EXPECT_EQ(lines[3], "| ours | C++ | 2 |  | 180 | 1.80 |  |");
  EXPECT_EQ(lines[5], "| theirs | Python | 2 | not measured |  |  |  |");
  EXPECT_THAT(suite_plot(two_worlds(), {rate(100), rate(180), {}, {}}), HasSubstr("C++ ours"));
  EXPECT_EQ(suite_plot(two_worlds(), {rate(100), {}, {}, {}}), "");
}

TEST(SuiteTables, OfTimesAreFasterWhenTheyAreLess) {
  auto table = two_worlds();
  table.columns = {"seconds"}, table.compare = "seconds";
  const auto took = [](double seconds) { return Measured{.figures = {{"seconds", seconds}}}; };
  const auto lines = suite_lines(table, {took(30), took(20), {}, took(50)}, true);
  EXPECT_EQ(lines[3], "| ours | C++ | 2 | 20.0 | 1.50 | 2.50 times |");
}

}  // namespace
}  // namespace checker::bench
