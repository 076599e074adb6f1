#include "judge/tell.hpp"

#include <algorithm>
#include <optional>

#include "course/render.hpp"
#include "support/error.hpp"

namespace checker {

namespace {

const std::vector<std::string>& features_for(const Chapter& chapter, const std::string& entry) {
  const auto found = chapter.blame.find(entry);
  if (found == chapter.blame.end()) {
    throw Error((chapter.folder / "chapter.yaml").string() + ": the blame table has no " + entry +
                ".");
  }
  return found->second.features;
}

// The first of these features' TODOs that belongs to the step and that somebody has worked on; if
// there is none, the first that belongs to the step.
std::optional<int> own_todo(const Course& course, const Step& step,
                            const std::vector<std::string>& features,
                            const std::set<int>& untouched) {
  std::optional<int> first;
  for (const auto& feature : features) {
    const int todo = course.todo_of(feature);
    if (std::ranges::find(step.todos, todo) == step.todos.end()) continue;
    if (!untouched.contains(todo)) return todo;
    if (!first) first = todo;
  }
  return first;
}

// The first whose TODO belongs to a step before, and so to what the program has.
std::optional<int> earlier_todo(const Course& course, const Step& step,
                                const std::vector<std::string>& features) {
  const auto had = features_until(course, step, Rendering::solution);
  const auto found =
      std::ranges::find_if(features, [&](const auto& feature) { return had.contains(feature); });
  if (found == features.end()) return std::nullopt;
  return course.todo_of(*found);
}

const Template& text_for(const std::map<std::string, Template>& texts, const std::string& variant) {
  const auto found = texts.find(variant);
  return found == texts.end() ? texts.at("otherwise") : found->second;
}

}  // namespace

int blamed(const Course& course, const Step& step, const std::vector<std::string>& entries,
           const std::set<int>& untouched) {
  const auto& chapter = course.chapter_of(step);
  for (const auto& entry : entries) {
    const auto own = own_todo(course, step, features_for(chapter, entry), untouched);
    if (own) return *own;
  }
  for (const auto& entry : entries) {
    if (const auto todo = earlier_todo(course, step, features_for(chapter, entry))) return *todo;
  }
  // All of it comes later in the course. What the student has done last is at fault.
  return step.todos.empty() ? course.todo_of(features_for(chapter, entries.front()).front())
                            : step.todos.back();
}

Finding tell(const Course& course, const Step& step, const Symptom& symptom,
             const std::set<int>& untouched) {
  const auto& words = course.chapter_of(step).words;
  const auto& texts = words.of(symptom.id);
  const auto text = [&](const std::map<std::string, Template>& variants) {
    return words.fill(text_for(variants, symptom.variant), symptom.values, texts.place);
  };
  const std::vector<std::string> entries =
      symptom.blame.empty() ? std::vector<std::string>{symptom.id} : symptom.blame;
  // What is not started is what an untouched TODO is for.
  const bool is_open = symptom.kind == FindingKind::not_started;
  Finding finding{.todo = blamed(course, step, entries, is_open ? std::set<int>{} : untouched),
                  .id = symptom.id,
                  .what = text(texts.what),
                  .why = text(texts.why),
                  .evidence = {},
                  .where = symptom.where,
                  .kind = symptom.kind,
                  .open = texts.open ? words.fill(*texts.open, symptom.values, texts.place) : "",
                  .deviation = symptom.deviation};
  for (const auto& seen : symptom.evidence) {
    auto values = seen.values;
    values.insert(symptom.values.begin(), symptom.values.end());
    // Before a program's own words stands what they mean.
    if (const auto said = seen.values.find("words"); said != seen.values.end()) {
      if (auto meaning = words.meaning_of(said->second.text)) {
        finding.evidence.push_back(std::move(*meaning));
      }
    }
    finding.evidence.push_back(words.line(texts, seen.name, values));
  }
  return finding;
}

std::vector<Finding> tell(const Course& course, const Step& step, const Symptoms& symptoms,
                          const std::set<int>& untouched) {
  // A TODO that the program has not begun, wherever its code would stand, is not what it did last.
  auto not_begun = untouched;
  std::vector<Finding> findings(symptoms.size());
  const auto tell_those = [&](bool begun) {
    for (size_t i = 0; i < symptoms.size(); ++i) {
      if ((symptoms[i].kind != FindingKind::not_started) != begun) continue;
      findings[i] = tell(course, step, symptoms[i], begun ? not_begun : untouched);
      if (!begun) not_begun.insert(findings[i].todo);
    }
  };
  tell_those(false);
  tell_those(true);
  return findings;
}

}  // namespace checker
