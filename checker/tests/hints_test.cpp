// Help in three depths: the TODO's text and hint leave the line to the student, the shape has gaps,
// and what was used is remembered.
#include <gmock/gmock.h>

#include <cctype>

#include "course/render.hpp"
#include "report/hint.hpp"
#include "report/step_diff.hpp"
#include "student.hpp"
#include "support/text.hpp"
#include "verbs/verbs.hpp"

namespace checker {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string without_blanks(std::string_view text) {
  std::string rest;
  for (const char letter : text) {
    if (std::isspace(static_cast<unsigned char>(letter)) == 0) rest += letter;
  }
  return rest;
}

// What gives the answer away in a text: the line without blanks and without what ends it, and of a
// declaration the call behind the =. Short lines are in any text.
std::vector<std::string> giveaways(std::string_view answer) {
  auto line = without_blanks(answer);
  const auto end = line.find_last_not_of(";,\\&{");
  line = line.substr(0, end == line.npos ? 0 : end + 1);
  std::vector<std::string> found{line};
  const auto call = line.find("=");
  const auto bracket = line.find('(', call == line.npos ? 0 : call);
  if (call != line.npos && bracket != line.npos && line.substr(bracket, 2) != "()") {
    found.push_back(line.substr(call + 1));
  }
  std::erase_if(found,
                [](const std::string& text) { return text.size() < 8 || text.ends_with("("); });
  return found;
}

// The line of the answer that the text holds; empty if it holds none.
std::string given_away(const std::string& text, const std::vector<std::string>& answer) {
  const auto squeezed = without_blanks(text);
  for (const auto& line : answer) {
    for (const auto& part : giveaways(line)) {
      if (squeezed.find(part) != squeezed.npos) return line;
    }
  }
  return "";
}

// The lines that a TODO adds.
std::vector<std::string> answer_to(const Course& course, const Todo& todo) {
  std::vector<std::string> lines;
  for (const auto& line : todo_diff(course, todo, {.descriptor = -1})) {
    if (line.starts_with("+")) lines.push_back(line.substr(1));
  }
  return lines;
}

TEST(Hints, ATextThatHoldsTheLineIsNoticed) {
  const std::vector<std::string> answer{"  const auto model = DistributedDataParallel(module);"};
  EXPECT_NE(given_away("Write: const auto model =\n  DistributedDataParallel(module).", answer),
            "");
  EXPECT_NE(given_away("Say DistributedDataParallel(module) there.", answer), "");
  EXPECT_EQ(given_away("A DistributedDataParallel around module.", answer), "");
  EXPECT_NE(
      given_away("all_reduce(totals, ReduceOp::SUM)", {"  all_reduce(totals, ReduceOp::SUM);"}),
      "");
  EXPECT_EQ(given_away("loss.targets() is a tensor", {"  torch::Tensor targets = loss.targets();"}),
            "");
}

TEST(Hints, NeitherTextNorHintHoldsTheAnswer) {
  const auto course = load_course(testing::chapters_folder(), Chapters::with_tests);
  for (const auto& [number, todo] : course.todos) {
    const auto answer = answer_to(course, todo);
    EXPECT_THAT(answer.empty() ? course.todos.at(number).here_too + "-" : answer.front(),
                Not(IsEmpty()));
    EXPECT_EQ(given_away(todo.text, answer), "") << name_of_todo(number) << "'s text";
    EXPECT_EQ(given_away(todo.hint, answer), "") << name_of_todo(number) << "'s hint";
    EXPECT_EQ(given_away(todo.here_too, answer), "") << name_of_todo(number) << "'s here_too";
  }
}

TEST(Hints, EveryTodoOfTheCourseHasAShapeWithGaps) {
  const auto& course = testing::course();
  for (const auto& [number, todo] : course.todos) {
    EXPECT_THAT(todo.shape, Not(IsEmpty())) << name_of_todo(number);
    EXPECT_EQ(given_away(todo.shape, answer_to(course, todo)), "")
        << name_of_todo(number) << "'s shape has no gap";
  }
}

TEST(Hints, ParagraphsSurviveInTheStudentsFile) {
  const auto& course = testing::course();
  const auto& step = course.step("04");
  const auto text = render(course, testing::trainer_file(), step, Rendering::step);
  EXPECT_THAT(text, HasSubstr("that\n  //   wraps `module`.\n  //\n  //   So far every rank"));
  EXPECT_EQ(strip_comments(text, "//").find("So far every rank"), std::string::npos);
}

class HelpTest : public ::testing::Test {
 protected:
  std::string say(int (*verb)(const Project&, const Arguments&), const Arguments& arguments) {
    return testing::printed([&] { verb(student_.project, arguments); });
  }
  std::map<int, Help> help() const { return recall(student_.project).help; }

  testing::Student student_;
};

TEST_F(HelpTest, ComesInThreeDepths) {
  const auto first = say(run_hint, {"8"});
  EXPECT_THAT(first, HasSubstr("One line changes."));
  EXPECT_THAT(first, HasSubstr("The shape of the code: ./workbook hint 8, once more\n"));
  EXPECT_THAT(first, Not(HasSubstr("Wrapper")));
  const auto second = say(run_hint, {"8"});
  EXPECT_THAT(second, HasSubstr("One line changes."));
  EXPECT_THAT(second, HasSubstr("    const auto model = Wrapper(...);\n"));
  EXPECT_THAT(second, HasSubstr("The answer: ./workbook diff 8\n"));
  EXPECT_EQ(say(run_hint, {"8"}), second);
  EXPECT_THAT(say(run_hint, {"9"}), Not(HasSubstr("set_epoch(...)"))) << "another TODO";
  EXPECT_THAT(say(run_hint, {"8", "--more"}), HasSubstr("mean loss over its own batch"));
}

TEST_F(HelpTest, TheDeepestIsRememberedAndShown) {
  EXPECT_THAT(say(run_progress, {}), Not(HasSubstr("Help used")));
  say(run_hint, {"8", "--more"});
  EXPECT_THAT(help(), IsEmpty()) << "what is behind it gives nothing away";
  say(run_hint, {"8"});
  say(run_hint, {"9"});
  say(run_hint, {"9"});
  say(run_diff, {"10"});
  say(run_hint, {"10"});
  EXPECT_EQ(help(), (std::map<int, Help>{{8, Help::hint}, {9, Help::shape}, {10, Help::answer}}));
  EXPECT_THAT(
      say(run_progress, {}),
      HasSubstr(
          "\nHelp used: hint: TODO 8; shape of the code: TODO 9; answer: TODO 10.\n\nNext is"));
  say(run_diff, {"04"});
  EXPECT_EQ(help().at(8), Help::answer);
  EXPECT_EQ(help().at(9), Help::answer);
}

TEST_F(HelpTest, AVerdictKeepsIt) {
  say(run_hint, {"8"});
  student_.edit("04");
  const auto& step = student_.course.step("04");
  remember(student_.project, student_.course, testing::report(student_.course, "04"),
           take_fingerprints(student_.project, student_.course, step));
  EXPECT_EQ(help().at(8), Help::hint);
  say(run_diff, {"8"});
  EXPECT_EQ(help().at(8), Help::hint) << "whoever compares what is done needed no help";
}

TEST_F(HelpTest, WhatCannotBeNotedIsGivenAllTheSame) {
  student_.write("steps/.progress",
                 R"({"todos": {}, "help": {"8": "telepathy", "x": "hint", "9": 3}})");
  EXPECT_EQ(help().at(8), Help::none);
  EXPECT_THAT(say(run_hint, {"9"}), HasSubstr("set_epoch"));
  student_.write("steps/.progress", R"({"todos": {}, "help": []})");
  EXPECT_THAT(help(), IsEmpty());
  say(run_hint, {"8"});
  EXPECT_EQ(help().at(8), Help::hint);
  student_.project.source = "/proc/self";
  remember_help(student_.project, {8}, Help::answer);
}

}  // namespace
}  // namespace checker
