// What the judge says of the errors that students make: real words of clang and of GCC, for edits
// of the steps' files. The files in compile_errors/ have them.
#include <gmock/gmock.h>

#include "course/compile_words.hpp"
#include "course/mapping.hpp"
#include "course/render.hpp"
#include "files.hpp"
#include "judge/compile.hpp"
#include "judge/given.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {
namespace {

using testing::course;
using ::testing::HasSubstr;

std::vector<YAML::Node> cases() {
  std::vector<YAML::Node> all;
  for (const auto& step : course().steps) {
    const auto file = std::filesystem::path(PROJECT_FOLDER) / "checker/tests/compile_errors" /
                      (step.name + ".yaml");
    if (!std::filesystem::exists(file)) continue;
    for (const auto& node : read_yaml(file)) all.push_back(node);
  }
  return all;
}

const Step& step_of(const YAML::Node& node) {
  return course().step(node["step"].as<std::string>());
}

std::string edited(const YAML::Node& node) {
  const auto& step = step_of(node);
  const bool given = node["start"].as<std::string>() == "given";
  auto text = render(course(), course().program_of(step), step,
                     given ? Rendering::step : Rendering::solution);
  for (const auto& edit : node["edits"]) {
    const auto from = edit["from"].as<std::string>();
    const auto at = text.find(from);
    if (at == text.npos) throw Error(node["name"].as<std::string>() + ": not there: " + from);
    text.replace(at, from.size(), edit["to"].as<std::string>());
  }
  return text;
}

// The recorded words have "<2: a line>" for the number of the second line that reads so.
std::string with_number(const std::string& recorded, const std::vector<std::string>& lines) {
  const auto begin = recorded.find('<'), end = recorded.find(">:");
  if (!recorded.starts_with("/p/train.cpp:<") || end == recorded.npos) return recorded;
  const auto colon = recorded.find(": ", begin);
  int left = std::stoi(recorded.substr(begin + 1));
  const auto wanted = recorded.substr(colon + 2, end - colon - 2);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (trim(lines[i]) == wanted && --left == 0) {
      return recorded.substr(0, begin) + std::to_string(i + 1) + recorded.substr(end + 1);
    }
  }
  throw Error("no line reads " + wanted);
}

CompileError explained(const YAML::Node& node, const char* compiler) {
  const auto text = edited(node);
  std::vector<std::string> output;
  for (const auto& line : split_lines(node[compiler].as<std::string>())) {
    output.push_back(with_number(line, split_lines(text)));
  }
  auto error = first_error(output, "/p/train.cpp", "train.cpp");
  if (!error) throw Error("no error in what " + std::string(compiler) + " said");
  explain(*error, course(), step_of(node), text);
  return *error;
}

TEST(CompileErrors, OfStudentsHaveTheirTodoAndASentence) {
  size_t count = 0;
  for (const auto& node : cases()) {
    for (const auto* compiler : {"clang", "gcc"}) {
      if (!node[compiler]) continue;  // it takes the program
      SCOPED_TRACE(node["name"].as<std::string>() + ", " + compiler);
      const auto error = explained(node, compiler);
      EXPECT_EQ(error.todo, node["todo"].as<int>()) << error.where;
      EXPECT_EQ(error.what, node["what"].as<std::string>()) << error.message;
      EXPECT_NE(error.fix, "");
      ++count;
    }
  }
  EXPECT_GT(count, 140U);
}

TEST(CompileErrors, OfWhichNothingIsKnownAreLeftAlone) {
  const auto& step = course().step("03");
  CompileError error{"train.cpp:900:1", "no such thing as a zorble", ""};
  explain(error, course(), step, "int main() {}\n");
  EXPECT_EQ(error.todo, 0);
  EXPECT_EQ(error.what + error.fix, "");
}

// The same words in another place mean something else.
TEST(CompileErrors, AreReadWithTheLineThatTheyAreAbout) {
  CompileError error{"train.cpp:1:8", "expected expression", ""};
  const auto say = [&](const std::string& text) {
    explain(error, course(), course().step("03"), text);
    return error.what;
  };
  EXPECT_EQ(say("f(true, );\n"), "");
  EXPECT_THAT(say("f(true,.shuffle = true);\n"), HasSubstr("stand in braces"));
}

// The trainer's file is another one, so no file of compile_errors/ can hold it.
TEST(CompileErrors, OfACapturedBucketAreExplained) {
  for (const auto* message : {"read-only variable is not assignable",
                              "increment of member 'Bucket::ready' in read-only object"}) {
    CompileError error{"ddp.hpp:1:7", message, ""};
    explain(error, course(), course().step("08"), "if (++bucket.ready == size) average(bucket);\n");
    EXPECT_THAT(error.what, HasSubstr("keeps a copy, which is const")) << message;
    EXPECT_THAT(error.fix, HasSubstr("[this, &bucket]"));
  }
}

TEST(CompileErrors, InGccsOwnQuotationMarksAreKnown) {
  CompileError error{"train.cpp:1:1", "\u2018rank\u2019 was not declared in this scope", ""};
  explain(error, course(), course().step("05"), "rank;\n");
  EXPECT_THAT(error.what, HasSubstr("No `rank` is known"));
}

TEST(CompileErrors, TodosAreFoundWhateverIsDoneBeside) {
  const auto& step = course().step("06");
  const auto given = render(course(), course().program_of(step), step, Rendering::step);
  const auto solved = render(course(), course().program_of(step), step, Rendering::solution);
  const auto& source = course().program_of(step).source;
  const auto todo = [&](std::string text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    const auto line =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    text.replace(at, from.size(), to);
    return todo_at(course(), source, step, text, static_cast<int>(line) + 1);
  };
  for (const auto* from : {"print0(\"test", "print0(\"best"}) {
    EXPECT_EQ(todo(solved, from, "prnt0(\"a"), 11);
  }
  EXPECT_EQ(todo(solved, "save0(*model, options.output / \"model-f", "x(\"model-f"), 12);
  EXPECT_EQ(todo(solved, "destroy_process_group()", "destroy()"), 13);
  EXPECT_EQ(todo(given, "torch::save(model, options.output / \"model-b", "save(\"model-b"), 12);
  EXPECT_EQ(todo(given, "  return 0;", "  destroy();\n  return 0;"), 13);
  EXPECT_EQ(todo(given, "tasks::Score best;", "tasks::Scores best;"), 0);
}

}  // namespace
}  // namespace checker
