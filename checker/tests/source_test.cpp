#include "course/source.hpp"

#include <gmock/gmock.h>

#include "files.hpp"

namespace checker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> lines(const Source& source, const std::set<std::string>& features) {
  std::vector<std::string> texts;
  for (const auto& line : source.select(features)) {
    if (line.header) {
      texts.emplace_back("<header>");
    } else {
      texts.push_back(line.todo ? line.text + "<" + std::to_string(line.todo) + ">" : line.text);
    }
  }
  return texts;
}

TEST(Source, ChoosesBranches) {
  const Source source("t.cpp", "//",
                      "//@header\n#include <a>\n  //@todo 3\n#if A\na\n#else\nb\n#endif\n"
                      "#if !B\nnot b\n#endif\nend\n");
  EXPECT_THAT(lines(source, {}),
              ElementsAre("<header>", "#include <a>", "  <3>", "b", "not b", "end"));
  EXPECT_THAT(lines(source, {"A", "B"}),
              ElementsAre("<header>", "#include <a>", "  <3>", "a", "end"));
  EXPECT_THAT(source.features(), ElementsAre("A", "B"));
  EXPECT_EQ(source.where("B"), "t.cpp:9");
  EXPECT_EQ(source.where(3), "t.cpp:3");
}

TEST(Source, ChoosesNestedBranches) {
  const Source source("t", "//",
                      "//@header\n#if A\n#if B\nab\n#else\na\n#endif\n#else\nno\n#endif");
  EXPECT_THAT(lines(source, {"A", "B"}), ElementsAre("<header>", "ab"));
  EXPECT_THAT(lines(source, {"A"}), ElementsAre("<header>", "a"));
  EXPECT_THAT(lines(source, {"B"}), ElementsAre("<header>", "no"));
}

TEST(Source, JobScriptsKeepTheirOwnHashLines) {
  const Source source("job", "#", "#!/bin/bash\n#@header\n#SBATCH --nodes=1\n# #if\n#@todo 17\n");
  EXPECT_THAT(lines(source, {}),
              ElementsAre("#!/bin/bash", "<header>", "#SBATCH --nodes=1", "# #if", "<17>"));
}

std::vector<std::string> marks(const Source& source, const std::set<std::string>& features) {
  std::vector<std::string> texts;
  for (const auto& line : source.select(features)) {
    if (!line.mark.empty()) texts.push_back(line.text + " is " + line.mark);
  }
  return texts;
}

TEST(Source, MarksAreNoPartOfTheText) {
  const Source source("t.cpp", "//",
                      "//@header\n  a(b,  //@a.call_1\n    c);  //@a.call_1\n//@todo 3\n"
                      "d;  // why  //@d\ne @ //\n");
  EXPECT_THAT(lines(source, {}),
              ElementsAre("<header>", "  a(b,", "    c);", "<3>", "d;  // why", "e @ //"));
  EXPECT_THAT(marks(source, {}),
              ElementsAre("  a(b, is a.call_1", "    c); is a.call_1", "d;  // why is d"));
  EXPECT_THAT(source.marks(), ElementsAre("a.call_1", "d"));
}

TEST(Source, MarksOfJobScriptsLeaveLinesThatGoOn) {
  const Source source("job", "#",
                      "#@header\n#SBATCH --nodes=2  #@nodes\nsrun a \\  #@srun\n  --b \\  #@b\n"
                      "#SBATCH --signal=B:USR1@120\n");
  EXPECT_THAT(lines(source, {}), ElementsAre("<header>", "#SBATCH --nodes=2", "srun a \\",
                                             "  --b \\", "#SBATCH --signal=B:USR1@120"));
  EXPECT_THAT(marks(source, {}),
              ElementsAre("#SBATCH --nodes=2 is nodes", "srun a \\ is srun", "  --b \\ is b"));
}

TEST(Source, BothBranchesMayHaveOneMark) {
  const Source source("t.cpp", "//", "//@header\n#if A\na  //@m\n#else\nb  //@m\n#endif\n");
  EXPECT_THAT(marks(source, {"A"}), ElementsAre("a is m"));
  EXPECT_THAT(marks(source, {}), ElementsAre("b is m"));
}

TEST(Source, LinesOfOneMarkFollowEachOther) {
  const Source apart("t.cpp", "//", "//@header\na  //@m\n#if A\nb\n#endif\nc  //@m\n");
  EXPECT_THAT(marks(apart, {}), ElementsAre("a is m", "c is m"));
  EXPECT_THAT(testing::error_of([&] { apart.select({"A"}); }),
              HasSubstr("t.cpp:6: the mark m is also on line 2, "));
  const Source todo_between("t.cpp", "//", "//@header\na  //@m\n//@todo 1\nb  //@m\n");
  EXPECT_THAT(testing::error_of([&] { todo_between.select({}); }),
              HasSubstr("t.cpp:4: the mark m is also on line 2, "));
}

struct Wrong {
  const char* text;
  const char* error;
};

class WrongSource : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongSource, IsRefusedNamingTheLine) {
  const auto error = testing::error_of([&] { Source("t.cpp", "//", GetParam().text); });
  EXPECT_THAT(error, HasSubstr(GetParam().error));
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongSource,
    ::testing::Values(Wrong{"//@header\n#if A\n", "t.cpp:2: this #if has no #endif"},
                      Wrong{"//@header\n\n#endif\n", "t.cpp:3: no #if is open"},
                      Wrong{"//@header\n#else\n", "t.cpp:2: no #if is open"},
                      Wrong{"//@header\n#if A\n#else\n#else\n#endif", "t.cpp:4: a second #else"},
                      Wrong{"//@header\n#if a\n#endif\n", "t.cpp:2: \"#if a\""},
                      Wrong{"//@header\n#if A && B\n#endif\n", "t.cpp:2: \"#if A && B\""},
                      Wrong{"//@header\n#if\n#endif\n", "t.cpp:2: \"#if\""},
                      Wrong{"//@header\n//@todo\n", "t.cpp:2: \"//@todo\" is neither"},
                      Wrong{"//@header\n//@todo 0\n", "t.cpp:2: \"//@todo 0\" is neither"},
                      Wrong{"//@header\n//@todo 1x\n", "t.cpp:2: \"//@todo 1x\" is neither"},
                      Wrong{"//@header\ni;  //@Mark\n", "t.cpp:2: \"//@Mark\" is not a mark"},
                      Wrong{"//@header\ni;  //@\n", "t.cpp:2: \"//@\" is not a mark"},
                      Wrong{"//@header\ni;  //@a b\n", "t.cpp:2: \"//@a b\" is not a mark"},
                      Wrong{"//@header\ni;  //@a  //@b\n", "t.cpp:2: \"//@a  //@b\" is no"},
                      Wrong{"//@header\ni;  //@todo 1\n", "t.cpp:2: \"//@todo 1\" is not a mark"},
                      Wrong{"//@header\ni; //@a\n", "t.cpp:2: \"//@a\" is not a mark"},
                      Wrong{"//@header\ni;   //@a\n", "t.cpp:2: \"//@a\" is not a mark"},
                      Wrong{"//@header\n// Words.  //@a\n", "t.cpp:2: only code has a mark"},
                      Wrong{"//@header\n#if A  //@a\n#endif", "t.cpp:2: only code has a mark"},
                      Wrong{"//@header\n#if A\n#else  //@a\n#endif", "t.cpp:3: only code has"},
                      Wrong{"int i;\n", "t.cpp: //@header must stand in it once, not 0"},
                      Wrong{"//@header\n//@header\n", "not 2 times"}));

}  // namespace
}  // namespace checker
