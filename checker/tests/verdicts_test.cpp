// From findings and the student's text to verdicts.
#include "judge/verdicts.hpp"
#include "files.hpp"

#include <gtest/gtest.h>

#include "course/render.hpp"
#include "judge/compile.hpp"
#include "judge/given.hpp"
#include "support/text.hpp"

namespace checker {
namespace {

using testing::course;

std::map<int, State> states(const std::vector<Verdict>& verdicts) {
  std::map<int, State> found;
  for (const auto& verdict : verdicts) found[verdict.todo] = verdict.state;
  return found;
}

Finding finding(int todo, FindingKind kind = FindingKind::mistake) {
  return {todo, "id", "what", "why", {}, "", kind};
}

TEST(Verdicts, WhatDependsOnAWrongTodoIsNotBlamed) {
  const auto& step = course().step("03");
  const auto found = states(to_verdicts(course(), step, course().todos_of(step, false),
                                        {finding(4), finding(6)}, {}, false));
  EXPECT_EQ(found.at(4), State::wrong);
  EXPECT_EQ(found.at(5), State::not_judged);
  EXPECT_EQ(found.at(6), State::not_judged);
}

TEST(Verdicts, ANoteIsToldAndRejectsNothing) {
  const auto& step = course().step("03");
  const auto found = to_verdicts(course(), step, course().todos_of(step, false),
                                 {finding(4, FindingKind::note)}, {}, false);
  EXPECT_EQ(found.at(0).state, State::done);
  EXPECT_TRUE(found.at(0).findings.empty());
  EXPECT_EQ(found.at(0).notes.size(), 1U);
  EXPECT_EQ(found.at(1).state, State::done) << "nothing waits for a note";
}

TEST(Verdicts, AConsequenceWaitsForItsCause) {
  const auto& step = course().step("06");
  const auto found = to_verdicts(course(), step, course().todos_of(step, false),
                                 {finding(10), finding(11, FindingKind::consequence)}, {}, false);
  EXPECT_EQ(found.at(0).state, State::not_judged);
  EXPECT_EQ(found.at(0).reason, "waits for TODO 10");
  EXPECT_EQ(states(found).at(10), State::wrong);
  EXPECT_EQ(states(found).at(12), State::done);
}

TEST(Verdicts, OpenIsWhatIsUntouchedAndNotStarted) {
  const auto& step = course().step("03");
  const auto found = [&](FindingKind kind, const std::set<int>& untouched) {
    return states(to_verdicts(course(), step, course().todos_of(step, false), {finding(6, kind)},
                              untouched, false));
  };
  const auto open = found(FindingKind::not_started, {6, 7});
  EXPECT_EQ(open.at(5), State::done);
  EXPECT_EQ(open.at(6), State::open);
  EXPECT_EQ(open.at(7), State::done);  // nothing was found, however it was done
  // Somebody was at its place, and it shows nothing.
  EXPECT_EQ(found(FindingKind::not_started, {7}).at(6), State::wrong);
  // It was done elsewhere, and is wrong.
  EXPECT_EQ(found(FindingKind::mistake, {6, 7}).at(6), State::wrong);
  EXPECT_EQ(found(FindingKind::crash, {6, 7}).at(6), State::wrong);
}

TEST(Verdicts, WhatNoRunShowsIsOpenWhileItsCodeIsAsGiven) {
  const auto& step = course().step("02");
  const auto found = [&](const std::set<int>& untouched) {
    return states(
        to_verdicts(course(), step, course().todos_of(step, false), {}, untouched, false));
  };
  EXPECT_EQ(found({2}).at(2), State::open);
  EXPECT_EQ(found({2}).at(3), State::done);
  EXPECT_EQ(found({}).at(2), State::done);
}

// What is written and shows nothing is open as well: then the run says why.
TEST(Verdicts, AnOpenTodoSaysWhatTheRunShows) {
  auto not_started = finding(13, FindingKind::not_started);
  not_started.open = "no rank reaches it";
  const auto of = [&](const std::set<int>& untouched) {
    return to_verdicts(course(), course().step("06"), {13}, {not_started}, untouched, false).at(0);
  };
  EXPECT_EQ(of({13}).state, State::open);
  EXPECT_EQ(of({13}).reason, "no rank reaches it");
  EXPECT_EQ(of({}).state, State::wrong);
  EXPECT_EQ(of({}).reason, "");
  const auto waits = to_verdicts(course(), course().step("06"), {13}, {not_started}, {13}, true);
  EXPECT_EQ(waits.at(0).reason, "no rank reaches it");
}

TEST(Verdicts, ACrashIsShownWhateverElseIsWrong) {
  const auto& step = course().step("03");
  const auto verdicts = to_verdicts(course(), step, course().todos_of(step, false),
                                    {finding(4), finding(5, FindingKind::crash)}, {5}, true);
  EXPECT_EQ(states(verdicts).at(4), State::wrong);
  EXPECT_EQ(states(verdicts).at(5), State::wrong);
}

TEST(Verdicts, AnOpenTodoExplainsNoMistakeElsewhere) {
  const auto& step = course().step("03");
  const auto not_started = finding(4, FindingKind::not_started);
  const auto with = [&](FindingKind kind) {
    return states(to_verdicts(course(), step, course().todos_of(step, false),
                              {not_started, finding(5, kind)}, {4, 5}, false));
  };
  EXPECT_EQ(with(FindingKind::mistake).at(4), State::open);
  EXPECT_EQ(with(FindingKind::mistake).at(5), State::wrong);
  EXPECT_EQ(with(FindingKind::not_started).at(5), State::open);
}

TEST(Verdicts, AMistakeIsShownBeforeWhatIsNotStarted) {
  auto mistake = finding(6);
  mistake.id = "mistake";
  const auto verdicts = to_verdicts(course(), course().step("03"), {4, 5, 6, 7},
                                    {finding(6, FindingKind::not_started), mistake}, {6}, false);
  EXPECT_EQ(verdicts.at(2).findings.front().id, "mistake");
}

TEST(Verdicts, ARunThatWasCutOffProvesNothingOfWhatCameLater) {
  const auto& step = course().step("06");
  const auto found =
      states(to_verdicts(course(), step, course().todos_of(step, false), {finding(11)}, {}, true));
  EXPECT_EQ(found.at(11), State::wrong);
  EXPECT_EQ(found.at(12), State::not_judged);
  EXPECT_EQ(found.at(13), State::not_judged);
}

// What is new beside the place of TODO 18 may be another one's. A run tells, unless it was cut off.
TEST(Verdicts, ARunThatWasCutOffLeavesOpenOnlyWhatIsNotBegunForSure) {
  const auto& step = course().step("08");
  const auto& file = file_at(course(), step, "ddp.hpp");
  const auto given = render(course(), file, step, Rendering::step);
  const auto doubtful = [&](const std::string& line, const std::string& other) {
    return doubtful_todos(course(), file.source, step, replaced(given, line, other));
  };
  EXPECT_EQ(doubtful("average(bucket);", "average(bucket), (void)0;"), std::set<int>{});
  const auto beside = doubtful("buckets_.emplace_back().", "broadcast(parameter, 0);  //");
  EXPECT_TRUE(beside.contains(18));
  const auto after_a_crash = states(to_verdicts(
      course(), step, {18, 19, 20, 21}, {finding(21, FindingKind::crash)}, {18, 19}, true, beside));
  EXPECT_EQ(after_a_crash.at(18), State::not_judged);
  EXPECT_EQ(after_a_crash.at(19), State::open);
}

TEST(Verdicts, AnEarlierTodoThatNoLongerHoldsIsNamed) {
  const auto& step = course().step("06");
  const auto verdicts =
      to_verdicts(course(), step, course().todos_of(step, false), {finding(8)}, {}, false);
  EXPECT_EQ(states(verdicts).at(8), State::wrong);
}

TEST(Verdicts, UntouchedAreThoseWhosePlacesReadAsGiven) {
  const auto& step = course().step("03");
  const auto given = render(course(), testing::trainer_file(), step, Rendering::step);
  EXPECT_EQ(untouched_todos(course(), testing::trainer_file().source, step, given),
            (std::set<int>{4, 5, 6, 7}));
  auto edited = given;
  const std::string code = "data::samplers::RandomSampler(*train_set.size())";
  const auto place = given.find("auto train_loader");
  ASSERT_NE(place, std::string::npos);
  edited.replace(place, 4, "const auto");
  EXPECT_EQ(untouched_todos(course(), testing::trainer_file().source, step, edited),
            (std::set<int>{4, 6, 7}));
  const auto solved = render(course(), testing::trainer_file(), step, Rendering::solution);
  EXPECT_EQ(untouched_todos(course(), testing::trainer_file().source, step, solved),
            std::set<int>{});
}

class Untouched : public ::testing::Test {
 protected:
  static std::set<int> after(const std::string& step, const std::string& line,
                             const std::string& other) {
    const auto given =
        render(course(), testing::trainer_file(), course().step(step), Rendering::step);
    const auto edited = replaced(given, line, other);
    EXPECT_NE(edited, given);
    return untouched_todos(course(), testing::trainer_file().source, course().step(step), edited);
  }
};

TEST_F(Untouched, CommentsAndLayoutMakeNoDifference) {
  EXPECT_EQ(after("04", "// TODO 8", "// My own words, TODO 8"), (std::set<int>{8, 9}));
  EXPECT_EQ(after("04", "const auto model = module;", "const auto model = module;  // for now"),
            (std::set<int>{8, 9}));
  EXPECT_EQ(after("04", "  const auto model = module;", "\n\tconst auto model = module;\n"),
            (std::set<int>{8, 9}));
  EXPECT_EQ(
      after("04", "const auto model = module;", "/* TODO 8\n is */ const auto model = module;"),
      (std::set<int>{8, 9}));
}

TEST_F(Untouched, ASecondLineCountsAsMuchAsTheFirst) {
  EXPECT_EQ(after("03", "data::samplers::RandomSampler(*train_set.size())", "train_sampler"),
            (std::set<int>{4, 6, 7}));
  EXPECT_EQ(after("06", "task->format(trained)", "task->format(valid)"), (std::set<int>{12, 13}));
}

TEST_F(Untouched, ANewLineTouchesThePlaceWhereCodeIsOnlyAdded) {
  const std::string call = "    const auto trained";
  EXPECT_EQ(after("04", call, "    train_sampler.set_epoch(epoch);\n" + call), (std::set<int>{8}));
  // Elsewhere it touches none; what the program does tells.
  const std::string validation = "    const auto valid";
  EXPECT_EQ(after("04", validation, "    train_sampler.set_epoch(epoch);\n" + validation),
            (std::set<int>{8, 9}));
}

TEST_F(Untouched, ALineBesideAPlaceDoesNotTouchIt) {
  // TODO 13's place lies right behind the last line of TODO 12's.
  EXPECT_EQ(after("06", "  return 0;", "  destroy_process_group();\n  return 0;"),
            (std::set<int>{11, 12}));
}

TEST_F(Untouched, TheCodeAsGivenIsKnownWithoutItsComments) {
  const auto& step = course().step("04");
  const auto given = render(course(), testing::trainer_file(), step, Rendering::step);
  const auto is_given = [&](const std::string& text) {
    return is_given_code(course(), testing::trainer_file().source, step, text);
  };
  EXPECT_TRUE(is_given(given));
  EXPECT_TRUE(is_given(replaced(given, "// TODO 9", "// Later: TODO 9")));
  EXPECT_FALSE(is_given(replaced(given, "epoch + 1", "epoch + 2")));
  EXPECT_FALSE(is_given(render(course(), testing::trainer_file(), step, Rendering::solution)));
}

// In a script a directive looks like a comment, and belongs to one TODO alone.
TEST(Verdicts, UntouchedOfAJobScriptAreToldApart) {
  const auto& step = course().step("07");
  const auto given = render(course(), testing::job_file(), step, Rendering::step);
  const auto untouched = [&](const std::string& text) {
    return untouched_todos(course(), testing::job_file().source, step, text);
  };
  EXPECT_EQ(untouched(given), (std::set<int>{14, 15, 16, 17}));
  const auto four = replaced(given, "--gres=gpu:1", "--gres=gpu:4");
  EXPECT_EQ(untouched(four), (std::set<int>{15, 16, 17}));
  EXPECT_EQ(untouched(replaced(four, "--nodes=1", "--nodes=2")), (std::set<int>{15, 16}));
  const auto solved = render(course(), testing::job_file(), step, Rendering::solution);
  EXPECT_EQ(untouched(solved), std::set<int>{});
}

// TODO 12 replaces the lines before the place where TODO 13 adds one.
TEST(Verdicts, CodeAddedBesideANeighboursSolutionIsSeen) {
  const auto& step = course().step("06");
  const auto untouched = [&](const std::string& last) {
    const auto text = replaced(render(course(), testing::trainer_file(), step, Rendering::solution),
                               "  destroy_process_group();\n", last);
    return untouched_todos(course(), testing::trainer_file().source, step, text);
  };
  EXPECT_EQ(untouched(""), std::set<int>{13});
  EXPECT_EQ(untouched("  barrier();\n"), std::set<int>{});
}

// Where the GPUs are not there, or the ranks cannot meet, nobody can tell how they are started.
TEST(Verdicts, StartingRanksWaitsForGpusAndTheirMeeting) {
  const auto& step = course().step("07");
  for (const int earlier : {14, 15}) {
    const auto verdicts =
        to_verdicts(course(), step, course().todos_of(step, true), {finding(earlier)}, {}, false);
    EXPECT_EQ(states(verdicts).at(earlier), State::wrong);
    EXPECT_EQ(states(verdicts).at(16), State::not_judged);
    EXPECT_EQ(states(verdicts).at(17), State::done);
  }
}

}  // namespace
}  // namespace checker
