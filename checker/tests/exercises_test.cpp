// Exercises beside the steps: how they are numbered, read and shown.
#include <gmock/gmock.h>

#include <set>

#include "course/catalogue.hpp"
#include "course/numbers.hpp"
#include "files.hpp"
#include "instrumentation/numbers.hpp"
#include "report/hint.hpp"
#include "state/standing.hpp"
#include "student.hpp"
#include "support/error.hpp"
#include "verbs/check.hpp"

namespace checker {
namespace {

using testing::course;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Numbers, OfExercisesHaveALetter) {
  EXPECT_EQ(todo_labelled("5"), 5);
  EXPECT_EQ(todo_labelled("05"), 5);
  const int four = todo_labelled("C4").value_or(0);
  EXPECT_EQ(todo_labelled("c4"), four);
  EXPECT_EQ(label_of_todo(four), "C4");
  EXPECT_EQ(name_of_todo(four), "TODO C4");
  EXPECT_EQ(name_of_todo(17), "TODO 17");
  for (const auto* none : {"", "C", "4C", "0", "-1", "C0", "1000", "C1000", "5 "}) {
    EXPECT_EQ(todo_labelled(none), std::nullopt) << none;
  }
  EXPECT_TRUE(is_exercise(four));
  EXPECT_FALSE(is_exercise(903));
  EXPECT_TRUE(same_series(four, four + 7));
  EXPECT_FALSE(same_series(four, 4));
  EXPECT_LT(903, todo_labelled("A1").value_or(0)) << "exercises come behind all steps";
}

TEST(Exercises, HaveNoParentAndOneTodoThatIsCalledLikeThem) {
  size_t count = 0;
  for (const auto& step : course().steps) {
    if (!step.is_beside()) continue;
    ++count;
    EXPECT_EQ(step.parent, "");
    EXPECT_EQ(step.kind, ProgramKind::plain);
    ASSERT_EQ(step.todos.size(), 1U);
    EXPECT_EQ(label_of_todo(step.todos.front()), step.label());
    EXPECT_FALSE(step.results.empty());
    EXPECT_FALSE(course().todos.at(step.todos.front()).shape.empty());
  }
  EXPECT_EQ(count, 11U);
}

TEST(Exercises, AreFoundByTheirLabel) {
  for (const auto* name : {"c4", "C4", "C4_all_reduce"}) {
    EXPECT_EQ(course().step(name).name, "C4_all_reduce");
  }
  EXPECT_THAT(testing::error_of([] { course().step("c12"); }), HasSubstr("Unknown step: c12."));
}

TEST(Exercises, NeedEveryMark) {
  std::set<std::string> used, marks;
  for (const auto& entry : load_catalogue(course())) {
    if (!is_exercise(entry.todo)) continue;
    const auto own = entry.name.substr(0, entry.name.find('_'));
    EXPECT_EQ(todo_labelled(own), entry.todo) << entry.name;
    for (const auto& edit : entry.edits) {
      for (const auto& mark : edit.marks) used.insert(own + " " + mark);
    }
  }
  for (const auto& step : course().steps) {
    if (!step.is_beside()) continue;
    for (const auto& mark : course().program_of(step).source.marks()) {
      auto name = step.label() + " " + mark;
      name.front() = 'c';
      EXPECT_TRUE(used.contains(name)) << name;
    }
  }
}

// Who does the steps is not sent to the exercises, and who does these stays there.
TEST(Exercises, AreNextAfterExercisesAlone) {
  Standings all;
  for (const auto& [number, todo] : course().todos) all[number] = {State::done, false, ""};
  const int two = todo_labelled("C2").value_or(0), nine = todo_labelled("C9").value_or(0);
  all[two] = all[nine] = {};
  EXPECT_EQ(next_todo(all), std::nullopt);
  EXPECT_EQ(next_todo(all, two), nine);
  EXPECT_EQ(next_todo(all, nine), two);
  all[7] = {};
  EXPECT_EQ(next_todo(all, 17), 7);
  EXPECT_EQ(next_todo(all, two), nine);
}

TEST(Exercises, TheSecondHintHasTheShape) {
  const auto& todo = course().todos.at(todo_labelled("C2").value_or(0));
  const auto text = [&](HintPart part) {
    std::string all;
    for (const auto& line : hint_lines(course(), todo, part, Look())) all += line + "\n";
    return all;
  };
  EXPECT_THAT(text(HintPart::hint), HasSubstr("TODO C2"));
  EXPECT_THAT(text(HintPart::hint), Not(HasSubstr("collective(tensor")));
  EXPECT_THAT(text(HintPart::shape), HasSubstr("collective(tensor"));
}

TEST(Exercises, ACheckOfTheChapterJudgesAllOfThem) {
  const testing::Student student;
  std::vector<std::string> asked;
  const Judge judge = [&](const Course& all, const Step& step, const CheckOptions&) {
    asked.push_back(step.label());
    return testing::report(all, step.name);
  };
  for (const auto& step : student.course.steps) {
    if (!step.is_beside()) continue;
    student.write(student.course.path_of(step, student.course.program_of(step), false), "edited\n");
  }
  const auto text = testing::printed([&] { check_with(student.project, {"collectives"}, judge); });
  EXPECT_THAT(asked,
              ElementsAre("C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C10", "C11"));
  EXPECT_THAT(text, HasSubstr("11 of 11 TODOs are done.\nAll exercises of this chapter are done."));
  asked.clear();
  testing::printed([&] { check_with(student.project, {"TODO", "c3"}, judge); });
  EXPECT_THAT(asked, ElementsAre("C3"));
}

TEST(Exercises, HaveOtherNumbersOnEachRankAndForEachSeed) {
  using instrumentation::numbers_of_rank;
  std::set<std::vector<double>> all;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    for (uint64_t rank = 0; rank < 4; ++rank) all.insert(numbers_of_rank(seed, rank, 4));
  }
  EXPECT_EQ(all.size(), 200U);
  EXPECT_EQ(numbers_of_rank(7, 2, 4), numbers_of_rank(7, 2, 4));
  for (const auto& numbers : all) {
    for (const double number : numbers) EXPECT_TRUE(number >= 10 && number <= 99) << number;
  }
}

// What a chapter of exercises may not say.
TEST(Exercises, ErrorsOfTheirChapterNameTheLine) {
  const auto error = [](const std::string& results) {
    const TemporaryFolder folder;
    write_file(folder.path() / "order.yaml", "chapters: [small]\n");
    write_file(folder.path() / "findings.yaml", "findings: {}\n");
    write_file(folder.path() / "small" / "a.cpp", "//@header\n//@todo A1\n#if ONE\na();\n#endif\n");
    write_file(
        folder.path() / "small" / "todos" / "A1.yaml",
        "title: T\ndone: d\nstep: A1_a\nfeatures: [ONE]\ntext: t\nhint: h\nexplanation: e\n");
    write_file(folder.path() / "small" / "chapter.yaml",
               "kind: plain\nfiles: {a.cpp: program}\nworlds: [[0]]\nrules: {}\nsteps:\n"
               "  - {name: A1_a, title: A, intro: A., run: a, todos: [A1], " +
                   results + "}\n");
    return testing::error_of([&] { load_course(folder.path()); });
  };
  EXPECT_EQ(error("results: {sum: sum}, numbers: 4"), "no error");
  EXPECT_THAT(error("results: {sum: {is: sum, on: rank_1}}"),
              HasSubstr("chapter.yaml:6: on must be rank_0."));
  EXPECT_THAT(error("results: {sum: sum}, numbers: many"),
              HasSubstr("chapter.yaml:6: numbers must be a whole number."));
  EXPECT_THAT(error("numbers: 4"), HasSubstr("the key expected is missing"));
}

}  // namespace
}  // namespace checker
