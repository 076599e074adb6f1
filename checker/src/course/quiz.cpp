#include "course/quiz.hpp"

#include <algorithm>
#include <set>

#include "course/mapping.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMostChoices = 6;

template <typename T>
T value_of(const fs::path& file, const YAML::Node& node, const char* what) {
  try {
    return node.as<T>();
  } catch (const YAML::Exception&) {
    fail(file, node.Mark(), std::string(what) + " is expected here.");
  }
}

Proof read_proof(const fs::path& file, const YAML::Node& node, const Course& course) {
  const Mapping mapping(file, node,
                        {"run", "judge", "world", "options", "config", "shows", "times"});
  Proof proof;
  proof.judged = mapping.has("judge");
  proof.step = course.step(mapping.line(proof.judged ? "judge" : "run")).name;
  if (mapping.has("world")) proof.world = value_of<size_t>(file, mapping.node("world"), "a number");
  if (mapping.has("options")) proof.options = mapping.list<std::string>("options");
  if (mapping.has("config")) proof.config = mapping.text("config") + "\n";
  if (mapping.has("times")) proof.times = value_of<size_t>(file, mapping.node("times"), "a number");
  proof.shows = mapping.line("shows");
  read_regex(file, mapping.node("shows"));
  return proof;
}

Question read_question(const fs::path& file, const YAML::Node& node, const Course& course) {
  const Mapping mapping(file, node, {"name", "ask", "choices", "right", "why", "proof"});
  Question question{.name = mapping.line("name"),
                    .ask = mapping.text("ask"),
                    .choices = mapping.list<std::string>("choices"),
                    .why = mapping.text("why"),
                    .proof = std::nullopt};
  const auto right = mapping.line("right");
  const std::set<std::string> different(question.choices.begin(), question.choices.end());
  if (question.choices.size() < 2 || question.choices.size() > kMostChoices ||
      different.size() != question.choices.size()) {
    fail(file, mapping.node("choices").Mark(), "two to six different choices are expected here.");
  }
  while (question.right < question.choices.size() && letter_of(question.right) != right) {
    ++question.right;
  }
  if (question.right == question.choices.size()) {
    fail(file, mapping.node("right").Mark(), "right must be the letter of a choice.");
  }
  if (mapping.has("proof")) question.proof = read_proof(file, mapping.node("proof"), course);
  return question;
}

}  // namespace

std::string letter_of(size_t choice) { return {static_cast<char>('a' + choice)}; }

std::vector<Question> load_quiz(const fs::path& folder, const Course& course) {
  const auto file = folder / "quiz.yaml";
  const Mapping quiz(file, read_yaml(file), {"questions"});
  const auto nodes = quiz.node("questions");
  std::vector<Question> questions;
  std::set<std::string> names;
  for (const auto& node : nodes) {
    questions.push_back(read_question(file, node, course));
    if (!names.insert(questions.back().name).second) {
      fail(file, node.Mark(), "a second question " + questions.back().name + ".");
    }
  }
  if (questions.empty()) fail(file, nodes.Mark(), "a list of questions is expected here.");
  return questions;
}

}  // namespace checker
