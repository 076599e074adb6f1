// The catalogue that the judge is tested with fits the course. Whether the judge is right about it:
// checker verify.
#include "course/catalogue.hpp"

#include <gmock/gmock.h>

#include "files.hpp"
#include "support/text.hpp"

namespace checker {
namespace {

using testing::course;
using testing::error_of;
using ::testing::HasSubstr;

const std::vector<CatalogueEntry>& catalogue() {
  static const auto loaded =
      load_catalogue(testing::chapters_folder() / testing::kChapter / "catalogue", course());
  return loaded;
}

// A course of two steps: enough for edits, and nobody rewrites it.
const Course& small_course() {
  static const TemporaryFolder folder;
  static const Course loaded = [] {
    const auto todo = [](int number, const char* step, const char* feature) {
      write_file(folder.path() / "small" / "todos" / ("0" + std::to_string(number) + ".yaml"),
                 std::string("{title: Do it, done: it is done, text: Long., hint: h, ") +
                     "explanation: e, step: " + step + ", features: [" + feature + "]}");
    };
    todo(1, "01_a", "ONE");
    todo(2, "02_b", "TWO");
    todo(3, "02_b", "THREE");
    write_file(folder.path() / "order.yaml", "chapters: [small]\n");
    write_file(folder.path() / "findings.yaml", "findings: {lost: {what: It is lost., why: x}}\n");
    write_file(
        folder.path() / "small" / "chapter.yaml",
        "files: {train.cpp: program, job.sbatch: job}\n"
        "task: a\nworlds: [[0]]\nrules: {}\nsteps:\n  - {name: 01_a, title: A, intro: A., run: a, "
        "todos: [1]}\n"
        "  - {name: 02_b, title: B, intro: B., run: b, todos: [2, 3]}\n");
    write_file(folder.path() / "small" / "train.cpp",
               "//@header\nint main() {  //@main\n  //@todo 1\n#if ONE\n  one(1,  //@one\n"
               "      2);  //@one\n#endif\n  //@todo 2\n#if TWO\n  two(2, 2);  //@two\n#endif\n"
               "  end();  //@end\n}\n");
    write_file(folder.path() / "small" / "job.sbatch",
               "#@header\n#@todo 3\n#if THREE\nrun \\  #@run\n  --three=$X \\  #@three\n  \"$@\"\n"
               "#endif\n");
    return load_course(folder.path());
  }();
  return loaded;
}

// The one entry with these edits, in this file of a catalogue for the small course.
CatalogueEntry entry_of(const std::string& file, const std::string& edits, int times = 1) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "variants");
  std::string text;
  while (times-- > 0) text += "- name: mine\n  belief: words\n  edits:\n" + edits;
  write_file(folder.path() / "wrong" / file, text);
  return load_catalogue(folder.path(), small_course()).at(0);
}

// Without blank lines and lines of comment.
std::string code_of(const std::string& text, const std::string& comment) {
  std::string code;
  for (const auto& line : split_lines(text)) {
    const auto word = trim(line);
    if (word.empty() || word == comment || word.starts_with(comment + " ")) continue;
    code += line + "\n";
  }
  return code;
}

TEST(Catalogue, HasEnoughForEveryTodo) {
  int wrong = 0, right = 0;
  const auto all = load_catalogue(course());
  for (const auto& [number, todo] : course().todos) {
    const auto count = [&, number = number](bool of_wrong) {
      return std::ranges::count_if(all, [&](const CatalogueEntry& entry) {
        return entry.todo == number && (entry.kind == EntryKind::wrong) == of_wrong;
      });
    };
    EXPECT_GE(count(true), 3) << "TODO " << number;
    EXPECT_GE(count(false), 2) << "TODO " << number;
    wrong += static_cast<int>(count(true));
    right += static_cast<int>(count(false));
  }
  EXPECT_GE(wrong, 60);
  EXPECT_GE(right, 30);
}

TEST(Catalogue, EveryEntryFitsAStudentsFileToo) {
  for (const auto& entry : catalogue()) {
    if (entry.kind == EntryKind::unfinished) continue;
    SCOPED_TRACE(entry.where + ": " + entry.name);
    const bool job = testing::job_file().source.todos().contains(entry.todo);
    const auto text = [&](Rendering which) {
      const auto whole = apply_edits(entry, lines_for(entry, course(), which));
      return code_of(replaced(whole, "bin/solution_", "bin/step_"), job ? "#" : "//");
    };
    EXPECT_EQ(text(Rendering::student), text(Rendering::solution));
  }
}

TEST(Catalogue, NeedsEveryMark) {
  std::set<std::string> used;
  for (const auto& entry : catalogue()) {
    for (const auto& edit : entry.edits) used.insert(edit.marks.begin(), edit.marks.end());
  }
  for (const auto* source : {&testing::trainer_file(), &testing::job_file()}) {
    for (const auto& mark : source->source.marks()) EXPECT_TRUE(used.contains(mark)) << mark;
  }
}

TEST(Catalogue, CommentsOfTodosStayWhereTheyAre) {
  const auto entry = entry_of("02.yaml", "    - remove: two\n");
  const auto text = [&](Rendering which) {
    return apply_edits(entry, lines_for(entry, small_course(), which));
  };
  EXPECT_THAT(text(Rendering::solution), HasSubstr("2);\n  // TODO 2: it is done.\n  end();\n"));
  EXPECT_THAT(text(Rendering::student),
              HasSubstr("2);\n  // TODO 2: Do it.\n  //   Long.\n  end();\n"));
}

struct Form {
  const char* name;
  const char* file;
  const char* edits;
  const char* code;
};

class FormOfEdit : public ::testing::TestWithParam<Form> {};

TEST_P(FormOfEdit, MakesOfTheSolutionWhatItSays) {
  const auto& form = GetParam();
  const auto entry = entry_of(form.file, form.edits);
  const auto text = apply_edits(entry, lines_for(entry, small_course(), Rendering::solution));
  EXPECT_EQ(code_of(text, entry.todo == 3 ? "#" : "//"), form.code);
}

INSTANTIATE_TEST_SUITE_P(
    All, FormOfEdit,
    ::testing::Values(
        Form{"Replace", "02.yaml",
             "    - replace: two\n      with: |2\n          a();\n          b();\n",
             "int main() {\n  one(1,\n      2);\n  a();\n  b();\n  end();\n}\n"},
        Form{"ReplaceByALineWithoutItsEnd", "02.yaml", "    - {replace: two, with: \"  a();\"}\n",
             "int main() {\n  one(1,\n      2);\n  a();\n  end();\n}\n"},
        Form{"Remove", "02.yaml", "    - remove: two\n",
             "int main() {\n  one(1,\n      2);\n  end();\n}\n"},
        Form{"Before", "02.yaml", "    - {before: two, insert: \"  a();\"}\n",
             "int main() {\n  one(1,\n      2);\n  a();\n  two(2, 2);\n  end();\n}\n"},
        Form{"After", "02.yaml", "    - {after: two, insert: \"  a();\"}\n",
             "int main() {\n  one(1,\n      2);\n  two(2, 2);\n  a();\n  end();\n}\n"},
        Form{"Change", "02.yaml", "    - {in: two, change: \"(2,\", to: \"(1,\"}\n",
             "int main() {\n  one(1,\n      2);\n  two(1, 2);\n  end();\n}\n"},
        Form{"ChangeToNothing", "02.yaml", "    - {in: two, change: \"2, \", to: \"\"}\n",
             "int main() {\n  one(1,\n      2);\n  two(2);\n  end();\n}\n"},
        Form{"AllAroundOneMark", "02.yaml",
             "    - {after: two, insert: c}\n    - {in: two, change: two, to: b}\n"
             "    - {before: two, insert: a}\n",
             "int main() {\n  one(1,\n      2);\na\n  b(2, 2);\nc\n  end();\n}\n"},
        Form{"SeveralLinesReplaced", "01.yaml", "    - {replace: one, with: a}\n",
             "int main() {\na\n  end();\n}\n"},
        Form{"AboveSeveralLines", "01.yaml", "    - {before: one, insert: a}\n",
             "int main() {\na\n  one(1,\n      2);\n  end();\n}\n"},
        Form{"BelowSeveralLines", "01.yaml", "    - {after: one, insert: a}\n",
             "int main() {\n  one(1,\n      2);\na\n  end();\n}\n"},
        Form{"ChangeInTheSecondLine", "01.yaml", "    - {in: one, change: \"2\", to: \"3\"}\n",
             "int main() {\n  one(1,\n      3);\n  end();\n}\n"},
        Form{"SeveralMarks", "02.yaml", "    - {in: [one, two], change: \"2)\", to: \"3)\"}\n",
             "int main() {\n  one(1,\n      3);\n  two(2, 3);\n  end();\n}\n"},
        Form{"LineThatGoesOn", "03.yaml", "    - {in: three, change: $X, to: y}\n",
             "run \\\n  --three=y \\\n  \"$@\"\n"}),
    [](const auto& parameter) { return parameter.param.name; });

struct Misfit {
  const char* name;
  const char* file;
  const char* edits;
  const char* error;
};

class MisfitEdit : public ::testing::TestWithParam<Misfit> {};

TEST_P(MisfitEdit, IsRefusedSayingWhatAndWhere) {
  const auto& misfit = GetParam();
  EXPECT_THAT(error_of([&] { entry_of(misfit.file, misfit.edits); }), HasSubstr(misfit.error));
}

INSTANTIATE_TEST_SUITE_P(
    All, MisfitEdit,
    ::testing::Values(
        Misfit{"UnknownMark", "02.yaml", "    - remove: tow\n",
               "/wrong/02.yaml:4: mine: unknown mark tow. Did you mean 'two'?"},
        Misfit{"UnknownMarkInAList", "02.yaml", "    - remove: [two, edn]\n",
               "/wrong/02.yaml:4: mine: unknown mark edn. Did you mean 'end'?"},
        Misfit{"MarkOfTheOtherSource", "02.yaml", "    - remove: three\n",
               "/wrong/02.yaml:4: mine: unknown mark three"},
        Misfit{"MarkOfALaterStep", "01.yaml", "    - remove: two\n",
               "/wrong/01.yaml:4: mine: the mark two is not in the solution of the TODO's step"},
        Misfit{"NoSuchFragment", "02.yaml", "    - {in: two, change: three, to: x}\n",
               "/wrong/02.yaml:4: mine: \"three\" is not in the lines of two:\n  two(2, 2);"},
        Misfit{"FragmentTwice", "02.yaml", "    - {in: two, change: \"2\", to: x}\n",
               "/wrong/02.yaml:4: mine: \"2\" is 2 times in the lines of two:\n  two(2, 2);"},
        Misfit{"TheSameFragment", "02.yaml", "    - {in: two, change: two, to: two}\n",
               "/wrong/02.yaml:4: mine: this edit changes nothing"},
        Misfit{"TheSameLines", "02.yaml", "    - {replace: two, with: \"  two(2, 2);\"}\n",
               "/wrong/02.yaml:4: mine: this edit changes nothing"},
        Misfit{"UnknownKey", "02.yaml", "    - {replace: two, wiht: a}\n",
               "/wrong/02.yaml:4: unknown key wiht. Did you mean 'with'?"},
        Misfit{"KeyOfAnotherForm", "02.yaml", "    - {remove: two, with: a}\n",
               "/wrong/02.yaml:4: unknown key with"},
        Misfit{"MissingKey", "02.yaml", "    - {in: two, change: a}\n",
               "/wrong/02.yaml:4: the key to is missing"},
        Misfit{"TwoForms", "02.yaml", "    - {before: two, after: one, insert: a}\n",
               "/wrong/02.yaml:4: before and after are two edits"},
        Misfit{"NoForm", "02.yaml", "    - {with: a}\n",
               "/wrong/02.yaml:4: an edit begins with replace, remove, before, after or in"},
        Misfit{"NoMark", "02.yaml", "    - remove: []\n",
               "/wrong/02.yaml:4: remove must be a mark, or a list of marks"},
        Misfit{"NoLines", "02.yaml", "    - {after: two, insert: \"\"}\n",
               "/wrong/02.yaml:4: insert must be a text"},
        Misfit{"NoFragment", "02.yaml", "    - {in: two, change: \"\", to: a}\n",
               "/wrong/02.yaml:4: change must be a text"},
        Misfit{"NoEdits", "02.yaml", "    []\n", "/wrong/02.yaml:1: mine edits nothing"},
        Misfit{"ChangedAndRemoved", "02.yaml",
               "    - {in: two, change: two, to: x}\n    - remove: two\n",
               "/wrong/02.yaml:5: mine: this edit of two contradicts an earlier one"},
        Misfit{"ReplacedAndFollowed", "02.yaml",
               "    - {replace: two, with: a}\n    - {after: two, insert: b}\n",
               "/wrong/02.yaml:5: mine: this edit of two contradicts an earlier one"},
        Misfit{"TwiceBefore", "02.yaml",
               "    - {before: two, insert: a}\n    - {before: two, insert: b}\n",
               "/wrong/02.yaml:5: mine: this edit of two contradicts an earlier one"},
        Misfit{"TwiceInAList", "02.yaml", "    - remove: [two, two]\n",
               "/wrong/02.yaml:4: mine: this edit of two contradicts an earlier one"},
        Misfit{"NoSuchTodo", "09.yaml", "    - remove: two\n",
               "/wrong/09.yaml: there is no TODO 9"},
        Misfit{"NoNumber", "two.yaml", "    - remove: two\n",
               "/wrong/two.yaml: a catalogue file is named after its TODO"}),
    [](const auto& parameter) { return parameter.param.name; });

TEST(Catalogue, ANameIsTakenOnce) {
  EXPECT_THAT(error_of([&] { entry_of("02.yaml", "    - remove: two\n", /*times=*/2); }),
              HasSubstr("/wrong/02.yaml:5: the name mine is taken"));
}

// Edits the step as given, and says how every TODO of the step must stand.
CatalogueEntry unfinished_entry(const std::string& rest) {
  const TemporaryFolder folder;
  for (const char* kind : {"wrong", "variants"}) {
    std::filesystem::create_directories(folder.path() / kind);
  }
  write_file(
      folder.path() / "unfinished/02.yaml",
      "- name: mine\n  because: words\n  edits:\n    - {before: end, insert: \"  x();\\n\"}\n" +
          rest);
  return load_catalogue(folder.path(), small_course()).at(0);
}

TEST(Catalogue, UnfinishedWorkSaysHowEveryTodoStands) {
  const auto entry = unfinished_entry("  states: {2: wrong, 3: open}\n  finding: lost\n");
  EXPECT_EQ(entry.states, (std::map<int, std::string>{{2, "wrong"}, {3, "open"}}));
  EXPECT_EQ(entry.finding, "lost");
  const auto error = [](const std::string& rest) {
    return testing::error_of([&] { unfinished_entry(rest); });
  };
  EXPECT_THAT(error("  states: {2: worng, 3: open}\n"),
              HasSubstr("/unfinished/02.yaml:5: unknown state worng. Did you mean 'wrong'?"));
  EXPECT_THAT(error("  states: {2: wrong}\n"),
              HasSubstr("/unfinished/02.yaml:5: states must name each TODO of the step."));
  EXPECT_THAT(error("  states: {2: wrong, 3: open}\n  finding: lots\n"),
              HasSubstr("/unfinished/02.yaml:6: there is no finding lots. Did you mean 'lost'?"));
  EXPECT_THAT(error(""), HasSubstr("the key states is missing"));
}

}  // namespace
}  // namespace checker
