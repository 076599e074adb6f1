// Reads the chapters in their order, and checks that they fit together.
#include <algorithm>
#include <set>

#include "course/course.hpp"
#include "course/load_chapter.hpp"
#include "course/mapping.hpp"
#include "course/render.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

// Places in the program that blame tables speak of beside findings.
constexpr std::string_view kPlaces[] = {"phase",   "loop",   "evaluation_loop",
                                        "sampler", "loader", "call"};

void add(Course& course, LoadedChapter&& loaded) {
  for (auto& step : loaded.steps) {
    for (const auto& other : course.steps) {
      if (other.label() != step.label()) continue;
      throw Error((loaded.chapter.folder / "chapter.yaml").string() + ": the steps " + other.name +
                  " and " + step.name + " have the same number.");
    }
    course.steps.push_back(std::move(step));
  }
  for (auto& [number, todo] : loaded.todos) {
    const auto file = todo_file(loaded.chapter.folder, number).string();
    if (!course.todos.emplace(number, std::move(todo)).second) {
      throw Error(file + ": another chapter has a " + name_of_todo(number) + ".");
    }
  }
  course.chapters.push_back(std::move(loaded.chapter));
}

// A chapter has the words and the blame table of the one that its first step goes back to as well.
void inherit(Course& course) {
  auto& chapter = course.chapters.back();
  const auto first = std::ranges::find(course.steps, chapter.name, &Step::chapter);
  if (first->parent.empty()) return;
  const auto parent = std::ranges::find(course.steps, first->parent, &Step::name);
  if (parent == course.steps.end() || parent->chapter == chapter.name) return;
  const auto& from = course.chapter_of(*parent);
  chapter.blame.insert(from.blame.begin(), from.blame.end());
  chapter.words.add(from.words);
}

// What a blame table speaks of is a finding, one case of it, or a place in the program.
void check_blame(const Course& course) {
  for (const auto& chapter : course.chapters) {
    for (const auto& [entry, blame] : chapter.blame) {
      const auto subject = entry.substr(0, entry.find('.'));
      const auto known = chapter.words.ids();
      const bool place = std::ranges::find(kPlaces, subject) != std::end(kPlaces);
      if (!place && std::ranges::find(known, subject) == known.end()) {
        throw Error(blame.place + ": there is no finding " + subject +
                    did_you_mean(subject, known));
      }
      for (const auto& feature : blame.features) {
        try {
          course.todo_of(feature);
        } catch (const Error& error) {
          throw Error(blame.place + ": " + error.what());
        }
      }
    }
  }
}

std::string file_of(const Course& course, const Step& step) {
  return (course.chapter_of(step).folder / "chapter.yaml").string();
}

// A step's parent stands before it in the order of the course, so that there are no circles.
void check_parents(const Course& course) {
  std::vector<std::string> known;
  for (const auto& step : course.steps) {
    if (!step.parent.empty() && std::ranges::find(known, step.parent) == known.end()) {
      throw Error(file_of(course, step) + ": the parent of " + step.name + " is " + step.parent +
                  ", which is not a step before it" + did_you_mean(step.parent, known));
    }
    known.push_back(step.name);
  }
}

void check_needs(const Course& course) {
  for (const auto& [number, todo] : course.todos) {
    for (const int needed : todo.needs) {
      if (needed != number && course.todos.contains(needed)) continue;
      throw Error(todo_file(course.chapter_of(course.step_of(todo)).folder, number).string() +
                  ": needs names " + name_of_todo(needed) +
                  ", which is not another one of the course's.");
    }
  }
}

// Every feature that a source chooses lines by is some TODO's or step's, and the other way round.
void check_features(const Course& course) {
  std::vector<std::string> described, used;
  for (const auto& step : course.steps) {
    described.insert(described.end(), step.given.begin(), step.given.end());
  }
  for (const auto& [number, todo] : course.todos) {
    described.insert(described.end(), todo.features.begin(), todo.features.end());
  }
  for (const auto& chapter : course.chapters) {
    for (const auto& file : chapter.files) {
      for (const auto& feature : file.source.features()) {
        used.push_back(feature);
        if (std::ranges::find(described, feature) != described.end()) continue;
        throw Error(file.source.where(feature) + ": no TODO or step switches the feature " +
                    feature + " on" + did_you_mean(feature, described));
      }
    }
  }
  for (const auto& [number, todo] : course.todos) {
    const auto folder = course.chapter_of(course.step_of(todo)).folder;
    for (const auto& feature : todo.features) {
      if (std::ranges::find(used, feature) != used.end()) continue;
      throw Error(todo_file(folder, number).string() + ": no source has an #if " + feature +
                  did_you_mean(feature, used));
    }
  }
}

// Which lines follow each other, and so whether marks are right, shows when lines are chosen.
void check_marks(const Course& course) {
  for (const auto& step : course.steps) {
    for (const auto which : {Rendering::step, Rendering::solution}) {
      const auto features = features_until(course, step, which);
      for (const auto* file : course.files_of(step)) file->source.select(features);
    }
  }
}

// What a chapter's first step starts from, unless it says otherwise.
std::string last_of_the_steps(const Course& course) {
  const auto last = std::find_if(course.steps.rbegin(), course.steps.rend(),
                                 [](const Step& step) { return !step.is_beside(); });
  return last == course.steps.rend() ? "" : last->name;
}

}  // namespace

Course load_course(const fs::path& folder, Chapters which) {
  const auto file = folder / "order.yaml";
  const Mapping order(file, read_yaml(file), {"chapters", "tests"});
  auto names = order.list<std::string>("chapters");
  if (which == Chapters::with_tests && order.has("tests")) {
    const auto tests = order.list<std::string>("tests");
    names.insert(names.end(), tests.begin(), tests.end());
  }
  Course course;
  for (const auto& name : names) {
    if (!fs::exists(folder / name)) {
      fail(file, order.node("chapters").Mark(), "there is no folder " + name + " beside it.");
    }
    add(course, load_chapter(folder / name, last_of_the_steps(course)));
    inherit(course);
  }
  Words shared;
  shared.add(folder / "findings.yaml");
  for (auto& chapter : course.chapters) chapter.words.add(shared);
  check_parents(course);
  check_needs(course);
  check_features(course);
  check_blame(course);
  check_marks(course);
  return course;
}

}  // namespace checker
