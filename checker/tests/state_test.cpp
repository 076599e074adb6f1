// What is remembered of the student's TODOs.
#include <gmock/gmock.h>

#include "state/memory.hpp"
#include "state/standing.hpp"
#include "student.hpp"
#include "support/text.hpp"

namespace checker {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const fs::path memory_path = "steps/.progress";

class StateTest : public ::testing::Test {
 protected:
  // A report on the texts that are there now.
  std::string remember_now(const Report& report) const {
    const auto& step = student_.course.step(report.step);
    return remember(student_.project, student_.course, report,
                    take_fingerprints(student_.project, student_.course, step));
  }
  Standings now() const {
    return standings(student_.project, student_.course, recall(student_.project));
  }
  Report report(const std::string& step, std::vector<Verdict> verdicts = {}) const {
    return testing::report(student_.course, step, std::move(verdicts));
  }

  testing::Student student_;
};

TEST_F(StateTest, WithoutAFileEverythingIsOpen) {
  const auto all = now();
  EXPECT_EQ(all.size(), student_.course.todos.size());
  for (const auto& [number, standing] : all) {
    EXPECT_EQ(standing.state, State::open) << number;
    EXPECT_EQ(standing.note, "") << number;
  }
  EXPECT_EQ(next_todo(all), 1);
  EXPECT_FALSE(fs::exists(student_.path(memory_path))) << "reading writes nothing";
}

TEST_F(StateTest, VerdictsComeBack) {
  student_.edit("03");
  EXPECT_EQ(remember_now(report("03", {testing::wrong(5, "x"),
                                       testing::verdict(6, State::not_judged, "waits for TODO 5"),
                                       testing::verdict(7, State::open)})),
            "");
  const auto all = now();
  EXPECT_EQ(all.at(4).state, State::done);
  EXPECT_EQ(all.at(5).state, State::wrong);
  EXPECT_EQ(all.at(6).state, State::not_judged);
  EXPECT_EQ(all.at(6).note, "waits for TODO 5");
  EXPECT_EQ(all.at(7).state, State::open);
  EXPECT_EQ(count_done(all, {4, 5, 6, 7}), 1U);
}

TEST_F(StateTest, AnEditAfterTheVerdictIsSeen) {
  student_.edit("03");
  EXPECT_EQ(now().at(4).note, "edited, not judged yet");
  remember_now(report("03"));
  EXPECT_TRUE(now().at(4).done());
  student_.edit("03");
  const auto all = now();
  EXPECT_EQ(all.at(4).state, State::not_judged);
  EXPECT_EQ(all.at(4).note, "changed since it was judged");
  EXPECT_TRUE(all.at(4).needs_work());
  EXPECT_EQ(all.at(8).note, "") << "another step's file";
}

TEST_F(StateTest, AVerdictOnAnOlderTextDoesNotCountForTheNewOne) {
  student_.edit("03");
  const auto before =
      take_fingerprints(student_.project, student_.course, student_.course.step("03"));
  student_.edit("03");
  remember(student_.project, student_.course, report("03"), before);
  EXPECT_EQ(now().at(4).note, "changed since it was judged");
}

TEST_F(StateTest, AFileAsGivenIsOpenWhateverIsRemembered) {
  const auto given = student_.text(student_.trainer("03"));
  student_.edit("03");
  remember_now(report("03"));
  student_.write(student_.trainer("03"), given);
  EXPECT_EQ(now().at(4).state, State::open);
  EXPECT_EQ(now().at(4).note, "");
}

TEST_F(StateTest, AMissingFileIsSaid) {
  fs::remove(student_.path(student_.trainer("03")));
  EXPECT_EQ(now().at(4).note, "steps/03_sampler/train.cpp is not there");
}

TEST_F(StateTest, TheJobScriptsTodosGoByTheJobScript) {
  student_.write("sbatch/07_multi_node.sbatch", "#!/bin/bash\n");
  remember_now(report("07"));
  EXPECT_EQ(now().at(14).state, State::done);
  student_.edit("07");
  EXPECT_EQ(now().at(14).state, State::done) << "its trainer has no TODO";
  student_.write("sbatch/07_multi_node.sbatch", "#!/bin/bash\n#\n");
  EXPECT_EQ(now().at(14).note, "changed since it was judged");
}

TEST_F(StateTest, OnlyTheStepsOwnTodosAreRemembered) {
  student_.edit("05");
  auto fifth = report("05");
  fifth.verdicts.push_back(testing::wrong(5, "x"));
  remember_now(fifth);
  EXPECT_EQ(now().at(10).state, State::done);
  EXPECT_EQ(recall(student_.project).todos.count(5), 0U)
      << "it was judged in another file than its own";
}

TEST_F(StateTest, AProgramThatDoesNotCompileSaysNothingAboutItsTodos) {
  student_.edit("04");
  remember_now(report("04"));
  auto broken = report("04");
  broken.compile_error = CompileError{.where = "x", .message = "y", .source = "z"};
  remember_now(broken);
  EXPECT_EQ(now().at(8).state, State::not_judged);
  EXPECT_EQ(now().at(8).note, "the program does not compile");
}

TEST_F(StateTest, WhatANewerCourseNotedIsKept) {
  student_.write(memory_path,
                 R"({"todos": {"99": {"state": "done", "file": "f", "fingerprint": "x", "of": 1},
                               "4": {"state": "brilliant", "fingerprint": 3},
                               "x": [], "5": "nonsense"}, "course": {"version": 7}})");
  EXPECT_EQ(recall(student_.project).todos.count(4), 0U);
  student_.edit("04");
  EXPECT_EQ(remember_now(report("04")), "");
  const auto text = student_.text(memory_path);
  EXPECT_THAT(text, HasSubstr("\"of\": 1"));
  EXPECT_THAT(text, HasSubstr("\"version\": 7"));
  EXPECT_THAT(text, HasSubstr("brilliant"));
  EXPECT_EQ(recall(student_.project).todos.at(99).state, State::done);
  EXPECT_EQ(now().count(99), 0U);
  EXPECT_EQ(now().at(8).state, State::done);
}

TEST_F(StateTest, GarbageIsSetAsideOnce) {
  for (const std::string garbage :
       {"", "{\"todos\": {\"4\": {\"sta", "[1, 2]", "{\"todos\": 3}", "\xff\xfe\x00"}) {
    SCOPED_TRACE(garbage);
    student_.write(memory_path, garbage);
    const auto memory = recall(student_.project);
    EXPECT_THAT(memory.remark, HasSubstr("moved it to steps/.progress.broken"));
    EXPECT_TRUE(memory.todos.empty());
    EXPECT_EQ(student_.text("steps/.progress.broken"), garbage);
    EXPECT_EQ(recall(student_.project).remark, "") << "said once";
  }
  student_.write(memory_path, "garbage");
  student_.edit("04");
  EXPECT_THAT(remember_now(report("04")), HasSubstr("moved it to"));
  EXPECT_EQ(now().at(8).state, State::done) << "and the new verdict is remembered";
}

TEST_F(StateTest, AFileThatCannotBeReadOrWrittenIsARemark) {
  fs::create_directory(student_.path(memory_path));
  EXPECT_THAT(recall(student_.project).remark, HasSubstr("is a folder"));
  EXPECT_THAT(remember_now(report("04")), HasSubstr("is a folder"));
  fs::remove(student_.path(memory_path));
  student_.project.source = "/proc/self";
  EXPECT_THAT(remember(student_.project, student_.course, report("04"), {}),
              HasSubstr("The verdict was not saved."));
}

TEST(NextTodo, PrefersWhatCallsAndGoesRound) {
  Standings all{{1, {State::done, false, ""}},
                {2, {State::not_judged, false, "needs a Slurm"}},
                {3, {State::not_judged, true, "changed"}},
                {4, {State::wrong, false, ""}}};
  EXPECT_EQ(next_todo(all), 3);
  EXPECT_EQ(next_todo(all, 3), 4);
  EXPECT_EQ(next_todo(all, 4), 3);
  all[3] = all[4] = all[1];
  EXPECT_EQ(next_todo(all), 2);
  all[2] = all[1];
  EXPECT_EQ(next_todo(all), std::nullopt);
}

}  // namespace
}  // namespace checker
