// Programs that are no edits, and what they expect.
#include "course/whole_programs.hpp"

#include <gmock/gmock.h>

#include "files.hpp"
#include "judge/catalogue_run.hpp"
#include "support/files.hpp"

namespace checker {
namespace {

using testing::course;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;

class WholePrograms : public ::testing::Test {
 protected:
  void add(const std::string& name, const std::string& file, const std::string& expected) const {
    write_file(folder_.path() / "1" / name / file, "the text of " + name);
    write_file(folder_.path() / "1" / name / "expected.yaml", expected);
  }
  std::vector<WholeProgram> load() const { return load_whole_programs(folder_.path(), course()); }

  TemporaryFolder folder_;
};

TEST_F(WholePrograms, SayTheirStepAndTheirVerdict) {
  add("b", "train.cpp", "{step: 4, verdict: wrong, todo: 8, or: [9], why: It sums.}");
  add("a", "train.cpp", "{step: 06, verdict: right, why: It does all.}");
  add("c", "07_multi_node.sbatch", "{step: 7, verdict: wrong, todo: 16, why: It starts none.}");
  const auto programs = load();
  ASSERT_EQ(programs.size(), 3U);
  EXPECT_EQ(programs[0].name, "a");
  EXPECT_FALSE(programs[0].wrong);
  EXPECT_EQ(programs[0].step->label(), "06");
  EXPECT_EQ(programs[1].todo, 8);
  EXPECT_THAT(programs[1].or_todos, ElementsAre(9));
  EXPECT_EQ(programs[1].files.at("train.cpp"), "the text of b");
  EXPECT_TRUE(programs[2].job);
  const auto samples = whole_samples(course(), programs);
  EXPECT_EQ(samples[0].wanted, Expectation::accepted);
  EXPECT_EQ(samples[1].wanted, Expectation::rejected);
  EXPECT_EQ(samples[1].files.front().text, "the text of b");
  EXPECT_EQ(samples[1].form, Form::whole);
}

TEST_F(WholePrograms, MayBringSeveralFilesOfTheirStep) {
  const std::string expected = "{step: 8, verdict: wrong, todo: 19, why: It averages weights.}";
  add("a", "ddp.hpp", expected);
  const auto one = whole_samples(course(), load())[0].files;
  add("a", "train.cpp", expected);
  const auto both = whole_samples(course(), load())[0].files;
  ASSERT_EQ(one.size(), 2U);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_NE(one[0].text, "the text of a") << "it is the step's";
  EXPECT_EQ(one[1].text, "the text of a");
  EXPECT_EQ(both[0].text, "the text of a");
  EXPECT_EQ(both[1].text, "the text of a");
}

TEST_F(WholePrograms, MistakesInThemAreErrorsWithFileAndLine) {
  const auto error_with = [&](const std::string& expected) {
    add("a", "train.cpp", expected);
    return error_of([&] { load(); });
  };
  EXPECT_THAT(error_with("{step: 4, verdict: wrong, todo: 10, why: w}"),
              HasSubstr("a/expected.yaml:1: step 04_ddp has no TODO 10"));
  EXPECT_THAT(error_with("{step: 99, verdict: right, why: w}"), HasSubstr("there is no step 99"));
  EXPECT_THAT(error_with("{step: 4, verdict: good, why: w}"), HasSubstr("wrong or right"));
  EXPECT_THAT(error_with("{step: 4, verdict: wrong, why: w}"), HasSubstr("todo is missing"));
  add("a", "train.cpp", "{step: 4, verdict: right, why: w}");
  add("b", "other.cpp", "{step: 4, verdict: right, why: w}");
  EXPECT_THAT(error_of([&] { load(); }), HasSubstr("no file of step 04_ddp here"));
}

TEST_F(WholePrograms, OfTheCourseFitIt) {
  for (const auto& program : load_whole_programs(course())) {
    for (const auto& [name, text] : program.files) EXPECT_FALSE(text.empty()) << program.name;
  }
}

}  // namespace
}  // namespace checker
