#include <algorithm>
#include <iostream>

#include "course/catalogue.hpp"
#include "report/diff.hpp"
#include "state/memory.hpp"
#include "support/error.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"
#include "verbs/options.hpp"
#include "verbs/quiz_proof.hpp"

namespace checker {

namespace {

// A question, and the program of the catalogue that it is about, if it is about one.
struct Asked {
  Question question;
  const Step* step = nullptr;
  std::string text;
};

// "8_gradients_summed"
std::string name_of(const CatalogueEntry& entry) {
  return label_of_todo(entry.todo) + "_" + entry.name;
}

// What somebody changed in a trainer whose program is one file: is it still right?
Asked drawn(const Course& course, const CatalogueEntry& entry) {
  const auto& step = course.step_of(course.todos.at(entry.todo));
  const auto& file = course.source_of(course.todos.at(entry.todo));
  auto lines = lines_for(entry, course, Rendering::solution);
  const auto solution = text_of(lines);
  Asked asked{.step = &step, .text = apply_edits(entry, std::move(lines))};
  auto& question = asked.question;
  question.name = name_of(entry);
  question.ask = "Somebody changed the solution of step " + step.label() +
                 " like this. Does it still do the same on any number of ranks?\n";
  for (const auto& line : code_diff(solution, asked.text, file.source.comment())) {
    question.ask += line.starts_with("@@") ? "\n" : "  " + line + "\n";
  }
  question.choices = {"yes, this is another correct way", "no, something is wrong"};
  question.right = entry.kind == EntryKind::variant ? 0 : 1;
  question.why = (entry.kind == EntryKind::wrong ? "The idea behind it: " : "") + entry.words;
  return asked;
}

// Entries that make one program of a trainer, in an order that mixes TODOs, right and wrong.
std::vector<CatalogueEntry> entries_to_draw(const Course& course) {
  auto entries = load_catalogue(course);
  std::erase_if(entries, [&](const CatalogueEntry& entry) {
    const auto& todo = course.todos.at(entry.todo);
    const auto& step = course.step_of(todo);
    const bool program = course.source_of(todo).kind == FileKind::program;
    return entry.kind == EntryKind::unfinished || !program || step.is_beside() ||
           course.student_files(step).size() > 1;
  });
  std::ranges::sort(entries, {}, [](const CatalogueEntry& entry) {
    return fingerprint("quiz " + name_of(entry));
  });
  return entries;
}

class Quiz {
 public:
  explicit Quiz(const Project& project)
      : project_(project),
        course_(load_course(project.chapters())),
        questions_(load_quiz(project.chapters(), course_)) {}

  void list() const {
    const auto answers = recall(project_).quiz;
    size_t right = 0;
    for (const auto& question : questions_) {
      const auto answer = answers.find(question.name);
      const bool known = answer != answers.end();
      right += known && answer->second ? 1 : 0;
      const auto state = !known ? State::open : answer->second ? State::done : State::wrong;
      terminal::say("  " + mark(state, look_) + " " + question.name);
    }
    terminal::say("");
    terminal::say(std::to_string(right) + " of " + count_of(questions_.size(), "question") +
                  " answered correctly. After all of them come programs of the catalogue.");
  }

  Asked named(const std::string& name) const {
    const auto found = std::ranges::find(questions_, name, &Question::name);
    if (found != questions_.end()) return {.question = *found};
    std::vector<std::string> names;
    for (const auto& question : questions_) names.push_back(question.name);
    for (const auto& entry : entries_to_draw(course_)) {
      if (name_of(entry) == name) return drawn(course_, entry);
      names.push_back(name_of(entry));
    }
    const auto guess = did_you_mean(name, names);
    throw UsageError("Unknown question: " + name + (guess.empty() ? "." : guess));
  }

  // Those without an answer first, then those with a wrong one, then programs of the catalogue.
  Asked next(bool from_catalogue) const {
    const auto answers = recall(project_).quiz;
    if (!from_catalogue) {
      for (const auto& question : questions_) {
        if (!answers.contains(question.name)) return {.question = question};
      }
      for (const auto& question : questions_) {
        if (!answers.at(question.name)) return {.question = question};
      }
    }
    const auto entries = entries_to_draw(course_);
    const auto fresh = std::ranges::find_if(
        entries, [&](const CatalogueEntry& entry) { return !answers.contains(name_of(entry)); });
    if (entries.empty()) throw Error("The catalogue has no program for a question.");
    return drawn(course_, fresh == entries.end() ? entries.front() : *fresh);
  }

  void ask(const Question& question) const {
    terminal::say(look_.styled(terminal::Style::bold, question.name));
    terminal::say("");
    for (const auto& line : paragraphs(question.ask, 2, look_)) terminal::say(line);
    terminal::say("");
    for (size_t i = 0; i < question.choices.size(); ++i) {
      for (const auto& line : hanging_line(letter_of(i) + "  " + question.choices[i], 2, look_)) {
        terminal::say(line);
      }
    }
    terminal::say("");
  }

  // Whether the answer was right.
  bool answer(const Asked& asked, const std::string& letter, bool runs) const {
    const auto& question = asked.question;
    const auto right = letter_of(question.right);
    const bool is_right = letter == right;
    remember_answer(project_, question.name, is_right);
    terminal::say(is_right
                      ? look_.styled(terminal::Style::green, "Right.")
                      : look_.styled(terminal::Style::red, "No, the answer is " + right + "."));
    for (const auto& line : paragraphs(question.why, 2, look_)) terminal::say(line);
    if (!runs || (!asked.step && !question.proof)) return is_right;
    terminal::say("\nLet us see:");
    if (asked.step) {
      show_verdict(project_, course_, *asked.step, asked.text);
    } else {
      show_proof(project_, course_, *question.proof);
    }
    return is_right;
  }

  static std::string one_of(const Question& question, const std::string& word) {
    for (size_t i = 0; i < question.choices.size(); ++i) {
      if (trim(word) == letter_of(i)) return letter_of(i);
    }
    return "";
  }

 private:
  const Project& project_;
  const Course course_;
  const std::vector<Question> questions_;
  const Look look_ = present_look();
};

// From standard input; empty at its end.
std::string answer_of_reader(const Question& question) {
  const auto last = letter_of(question.choices.size() - 1);
  std::string line;
  while (true) {
    terminal::say("Your answer (a to " + last + ")?");
    if (!std::getline(std::cin, line)) return "";
    const auto letter = Quiz::one_of(question, line);
    if (!letter.empty()) return letter;
  }
}

}  // namespace

int run_quiz(const Project& project, const Arguments& arguments) {
  cxxopts::Options options("./workbook quiz",
                           "Asks what a program does, and runs it to show the answer.\n");
  options.add_options()("answer", "Answer directly, without a prompt",
                        cxxopts::value<std::string>(),
                        "LETTER")("catalogue", "Ask whether a program of the catalogue is right")(
      "list", "List the questions and your answers")(
      "no-run", "Run nothing; only give the answer and the reason");
  options.add_options("hidden")("name", "", cxxopts::value<std::string>());
  options.parse_positional({"name"});
  const auto parsed = parse(options, "[NAME] [options]",
                            "Without a name, it asks the next question that you have not answered "
                            "correctly. The exit\nstatus is 0 for a correct answer.",
                            arguments);
  if (!parsed) return 0;
  const Quiz quiz(project);
  if (parsed->count("list")) {
    quiz.list();
    return 0;
  }
  const auto asked = parsed->count("name") ? quiz.named((*parsed)["name"].as<std::string>())
                                           : quiz.next(parsed->count("catalogue") > 0);
  quiz.ask(asked.question);
  std::string letter;
  if (parsed->count("answer")) {
    letter = Quiz::one_of(asked.question, (*parsed)["answer"].as<std::string>());
    if (letter.empty()) throw UsageError("--answer must be the letter of a choice.");
  } else {
    letter = answer_of_reader(asked.question);
  }
  if (letter.empty()) {
    terminal::say("To answer: ./workbook quiz " + asked.question.name + " --answer a");
    return 1;
  }
  return quiz.answer(asked, letter, parsed->count("no-run") == 0) ? 0 : 1;
}

}  // namespace checker
