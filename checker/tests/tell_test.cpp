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
            "The test sampler pads: it repeats samples until all ranks have the same number.");
  EXPECT_EQ(what(""), "The test sampler shares samples among the wrong ranks.");
  EXPECT_EQ(what("none like it"), what(""));
}

// The finding of a rank that died with these words.
Finding died_saying(const std::string& words) {
  return tell(course(), course().step("05"),
              {.id = "dies",
               .values = {{"rank", 0}, {"doing", "in training"}, {"how", "exit 1"}, {"world", 2}},
               .evidence = {{"it_said_small", {{"words", words}}}, {"world", {}}},
               .blame = {"phase.training"}});
}

TEST(Tell, SaysWhatTheBackendsWordsMeanBeforeThem) {
  const std::string gloo =
      "[enforce fail at pair.cc:456] op.preamble.length <= op.nbytes. 1952 vs 8";
  EXPECT_THAT(
      died_saying(gloo).evidence,
      ElementsAre("Two ranks called different collectives, or one collective with tensors of "
                  "different sizes: expected 8 bytes, got 1952.",
                  "it said: " + gloo, "at world size 2"));
  const auto first = [](const std::string& words) { return died_saying(words).evidence.front(); };
  EXPECT_THAT(first("[pair.cc:525] Read error [127.0.0.1]:3: Connection reset by peer"),
              HasSubstr("Another rank ended"));
  EXPECT_THAT(first("Socket Timeout"), HasSubstr("did not arrive in time"));
  EXPECT_THAT(first("[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, "
                    "OpType=ALLREDUCE, NumelIn=2) ran for 600042 milliseconds"),
              HasSubstr("the collective ALLREDUCE timed out"));
  EXPECT_THAT(first("Tensors must be contiguous"), HasSubstr("tensor.contiguous()"));
  EXPECT_THAT(first("No backend type associated with device type cpu"),
              HasSubstr("tensors on cpu"));
  EXPECT_THAT(first("Default process group has not been initialized, please make sure to call "
                    "init_process_group."),
              HasSubstr("before setup(), or after destroy_process_group()"));
  EXPECT_THAT(first("The server socket has failed to bind to 0.0.0.0:4711 (errno: 98 - Address "
                    "already in use)."),
              HasSubstr("Another program uses the port"));
  EXPECT_EQ(first("vector::_M_range_check"), "it said: vector::_M_range_check");
}

// A guard that leaves too early shows in the step that has setup(), and before TODO 13 is reached.
TEST(Tell, BlamesSetupForAGroupLeftTooEarlyUnlessTheStepIsAboutLeaving) {
  for (const auto* entry : {"group_left_before_the_work", "work_after_leaving"}) {
    EXPECT_EQ(blamed(course(), course().step("02"), {entry}), 3);
    EXPECT_EQ(blamed(course(), course().step("03"), {entry}), 3);
    EXPECT_EQ(blamed(course(), course().step("06"), {entry}), 13);
  }
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

// A hand-written DistributedDataParallel with a message for each gradient has no buckets to blame.
TEST(Tell, PassesOverTodosThatTheProgramHasNotBegun) {
  const Values values{{"ranks", "rank 0"}, {"step", 1}, {"world", 2}, {"deviation", "1"}};
  const Symptom wrong{.id = "gradients_wrong", .values = values};
  const Symptom open{.id = "no_buckets", .kind = FindingKind::not_started};
  const auto todos = [](const Symptoms& symptoms) {
    std::vector<int> all;
    for (const auto& finding : tell(course(), course().step("08"), symptoms, {})) {
      all.push_back(finding.todo);
    }
    return all;
  };
  EXPECT_THAT(todos({wrong}), ElementsAre(21));
  EXPECT_THAT(todos({wrong, open}), ElementsAre(20, 21));
}

// Code that nobody has touched is ours. Where nothing is touched, the first is as good as any.
TEST(Tell, PassesOverUntouchedTodosOfAnEntry) {
  const auto todo = [](const std::vector<std::string>& entries, const std::set<int>& untouched) {
    return blamed(course(), course().step("03"), entries, untouched);
  };
  EXPECT_EQ(todo({"sampler.validation"}, {}), 4);
  EXPECT_EQ(todo({"sampler.validation"}, {4}), 6);
  EXPECT_EQ(todo({"sampler.validation"}, {4, 6}), 4);
  EXPECT_EQ(todo({"sampler.validation", "loader.test"}, {4, 6}), 4) << "the first entry counts";
  const auto told = [](FindingKind kind) {
    const Symptom symptom{.id = "uneven_steps", .kind = kind};
    return tell(course(), course().step("03"), symptom, {4}).todo;
  };
  EXPECT_EQ(told(FindingKind::mistake), 5);
  EXPECT_EQ(told(FindingKind::not_started), 4) << "that is what is untouched";
}

TEST(Tell, NamesWhatWordsLack) {
  const auto& step = course().step("05");
  EXPECT_THAT(error_of([&] { tell(course(), step, {.id = "uneven_stebs"}); }),
              HasSubstr("no finding uneven_stebs. Did you mean 'uneven_steps'?"));
  const Symptom no_value{.id = "dies", .blame = {"phase.training"}};
  EXPECT_THAT(error_of([&] { tell(course(), step, no_value); }),
              ::testing::AllOf(HasSubstr("findings.yaml:"), HasSubstr("no value for {rank}")));
  const Symptom no_line{.id = "uneven_steps", .evidence = {{"smell", {}}}};
  EXPECT_THAT(error_of([&] { tell(course(), step, no_line); }),
              HasSubstr("no line of evidence smell"));
}

}  // namespace
}  // namespace checker
