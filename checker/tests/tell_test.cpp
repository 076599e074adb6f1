// From what a rule saw to whose fault it is and what is said.
#include "judge/tell.hpp"

#include <gmock/gmock.h>

#include "files.hpp"
#include "judge/run_context.hpp"
#include "support/error.hpp"

namespace checker {
namespace {

using testing::course;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;

TEST(Template, FillsPlacesAndChoosesWords) {
  const Template text("{ranks} {ranks?does:do} it {count} {count?time:times}.");
  EXPECT_EQ(text.fill({{"ranks", ranks_value({1})}, {"count", 2}}), "rank 1 does it 2 times.");
  EXPECT_EQ(text.fill({{"ranks", ranks_value({0, 1, 2})}, {"count", 1}}),
            "ranks 0, 1 and 2 do it 1 time.");
  EXPECT_THAT(text.names(), ElementsAre("ranks", "ranks", "count", "count"));
}

TEST(Template, RefusesWhatItCannotFill) {
  EXPECT_THAT(error_of([] { Template("{a} {b"); }), HasSubstr("a { without a }"));
  EXPECT_THAT(error_of([] { Template("{a?b}"); }), HasSubstr("{name?word:words} expected"));
  EXPECT_THAT(error_of([] {
                Template("{a} {b}").fill({{"a", 1}});
              }),
              HasSubstr("no value for {b}"));
}

TEST(Tell, SaysWhatTheChapterSaysOfASymptom) {
  const Symptom symptom{.id = "uneven_steps",
                        .values = {{"split", "training"}, {"size", 30}, {"world", 2}},
                        .evidence = {{"split_size", {}},
                                     {"took", {{"rank", 1}, {"count", 3}, {"samples", "4, 5, 6"}}}},
                        .where = "train.cpp:7",
                        .kind = FindingKind::crash,
                        .deviation = 0.5};
  const auto finding = tell(course(), course().step("03"), symptom);
  EXPECT_EQ(finding.todo, 4);
  EXPECT_EQ(finding.id, "uneven_steps");
  EXPECT_EQ(finding.what, "Ranks take different numbers of training steps.");
  EXPECT_THAT(finding.why, HasSubstr("Each step needs all ranks"));
  EXPECT_THAT(finding.evidence, ElementsAre("the training split has 30 samples, at world size 2",
                                            "rank 1 took 3 samples: 4, 5, 6"));
  EXPECT_EQ(finding.where, "train.cpp:7");
  EXPECT_EQ(finding.kind, FindingKind::crash);
  EXPECT_EQ(finding.deviation, 0.5);
}

TEST(Tell, TakesTheVariantThatTheRuleNames) {
  const auto what = [](const std::string& variant) {
    const Symptom symptom{.id = "test_sampler_wrong",
                          .values = {{"split", "test"}},
                          .variant = variant,
                          .blame = {"sampler.test"}};
    return tell(course(), course().step("03"), symptom).what;
  };
  EXPECT_EQ(what("pads"),
            "The test sampler pads: it repeats samples until every rank has equally many.");
  EXPECT_EQ(what(""), "The test sampler deals to other ranks than there are.");
  EXPECT_EQ(what("none like it"), what(""));
}

TEST(Tell, BlamesTheTodoOfTheStep) {
  const auto todo = [](const char* step, const std::vector<std::string>& entries) {
    return blamed(course(), course().step(step), entries);
  };
  EXPECT_EQ(todo("04", {"phase.training"}), 8);   // DDP comes first
  EXPECT_EQ(todo("05", {"phase.training"}), 10);  // the first that belongs to the step
  EXPECT_EQ(todo("02", {"phase.training"}), 3);
  EXPECT_EQ(todo("07", {"phase.training"}), 8) << "none belongs to it: the first of all";
  EXPECT_EQ(todo("05", {"phase.leaving", "phase.training"}), 10);
  EXPECT_EQ(todo("06", {"phase.training", "phase.leaving"}), 13);
  EXPECT_EQ(todo("07", {"phase.leaving", "phase.training"}), 13);
  EXPECT_THAT(error_of([&] { todo("05", {"phase.dancing"}); }),
              HasSubstr("chapter.yaml: the blame table has no phase.dancing"));
}

TEST(Tell, NamesWhatWordsLack) {
  const auto& step = course().step("05");
  EXPECT_THAT(error_of([&] { tell(course(), step, {.id = "uneven_stebs"}); }),
              HasSubstr("no finding uneven_stebs, did you mean uneven_steps?"));
  const Symptom no_value{.id = "dies", .blame = {"phase.training"}};
  EXPECT_THAT(error_of([&] { tell(course(), step, no_value); }),
              ::testing::AllOf(HasSubstr("findings.yaml:"), HasSubstr("no value for {rank}")));
  const Symptom no_line{.id = "uneven_steps", .evidence = {{"smell", {}}}};
  EXPECT_THAT(error_of([&] { tell(course(), step, no_line); }),
              HasSubstr("no line of evidence smell"));
}

}  // namespace
}  // namespace checker
