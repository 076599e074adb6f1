#include "ladder/source.hpp"

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
                      Wrong{"int i;\n", "t.cpp: //@header must stand in it once, not 0"},
                      Wrong{"//@header\n//@header\n", "not 2 times"}));

}  // namespace
}  // namespace checker
