#include "report/diff.hpp"

#include <gmock/gmock.h>

#include "state/step_files.hpp"
#include "student.hpp"
#include "support/text.hpp"

namespace checker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(CodeDiff, CommentsEmptyLinesAndIndentationMakeNoDifference) {
  EXPECT_THAT(code_diff("// mine\nint a;\n\n  int b;\n", "int a;\nint b;\n// theirs\n", "//"),
              IsEmpty());
  EXPECT_THAT(code_diff("# mine\n#SBATCH --nodes=1\n", "#SBATCH --nodes=2\n", "#"),
              ElementsAre("@@ line 1 @@", " # mine", "-#SBATCH --nodes=1", "+#SBATCH --nodes=2"));
}

TEST(CodeDiff, ChangesStandTogetherWithThreeLinesAround) {
  EXPECT_THAT(code_diff("1\n2\n3\n4\n5\nold\n6\n7\n8\n9\n10\n11\n12\n13\nlast\n",
                        "1\n2\n3\n4\n5\nnew\n6\n7\n8\n9\n10\n11\n12\n13\n", "//"),
              ElementsAre("@@ line 3 @@", " 3", " 4", " 5", "-old", "+new", " 6", " 7", " 8",
                          "@@ line 12 @@", " 11", " 12", " 13", "-last"));
}

TEST(CodeDiff, EachTodosPlaceIsComparedWithItsOwn) {
  EXPECT_THAT(code_diff("// TODO 5: Do this.\n//   text\nx(random);\n// TODO 6: And this.\n"
                        "y(random);\n// TODO 7: Add.\n//   more\n\nint end;\n",
                        "// TODO 5: done.\nx(sampler);\n// TODO 6: done.\ny(sampler);\n"
                        "// TODO 7: done.\nadd();\nint end;\n",
                        "//"),
              ElementsAre("@@ line 1 @@", " // TODO 5: Do this.", " //   text", "-x(random);",
                          "+x(sampler);", " // TODO 6: And this.", "-y(random);", "+y(sampler);",
                          " // TODO 7: Add.", " //   more", "+add();", " ", " int end;"));
}

TEST(CodeDiff, EmptyTexts) {
  EXPECT_THAT(code_diff("", "", "//"), IsEmpty());
  EXPECT_THAT(code_diff("", "a\n", "//"), ElementsAre("@@ line 1 @@", "+a"));
  EXPECT_THAT(code_diff("a\n", "", "//"), ElementsAre("@@ line 1 @@", "-a"));
}

// Every - line is the student's, every + line the reference's, and applying them gives its code.
TEST(CodeDiff, TurnsEveryStepIntoItsSolution) {
  const auto course = load_course(testing::chapters_folder());
  const auto code = [](const std::string& text, const std::string& comment) {
    std::vector<std::string> lines;
    for (const auto& line : split_lines(text)) {
      const bool option = line.starts_with("#SBATCH") || line.starts_with("#!");
      const auto word = trim(line);
      if (option || (!word.empty() && !word.starts_with(comment))) lines.push_back(line);
    }
    return lines;
  };
  for (const auto& step : course.steps) {
    for (const auto& file : step_files(course, step)) {
      SCOPED_TRACE(file.path);
      size_t removed = 0, added = 0;
      for (const auto& line : code_diff(file.given, file.solved, file.comment)) {
        removed += line.front() == '-' ? 1 : 0;
        added += line.front() == '+' ? 1 : 0;
      }
      const auto before = code(file.given, file.comment).size();
      EXPECT_EQ(before - removed + added, code(file.solved, file.comment).size());
      EXPECT_THAT(code_diff(file.solved, file.solved, file.comment), IsEmpty());
    }
  }
}

}  // namespace
}  // namespace checker
