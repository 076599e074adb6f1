// Reads the ladder's files and checks each by itself and all of them together.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <regex>

#include "ladder/ladder.hpp"
#include "ladder/mapping.hpp"
#include "ladder/render.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

Step read_step(const fs::path& file, const YAML::Node& node, int number) {
  const Mapping mapping(file, node, {"name", "title", "intro", "run", "todos", "given"});
  Step step{.number = number,
            .name = mapping.line("name"),
            .title = mapping.line("title"),
            .intro = mapping.text("intro"),
            .run = mapping.line("run"),
            .todos = mapping.list<int>("todos"),
            .given = mapping.has("given") ? mapping.list<std::string>("given")
                                          : std::vector<std::string>{}};
  static const std::regex form("[0-9]{2}_[a-z0-9_]+");
  if (!std::regex_match(step.name, form) || std::stoi(step.digits()) != number) {
    fail(file, node.Mark(),
         "the name " + step.name + " must begin with the step's number, " + std::to_string(number) +
             " in two digits, and _.");
  }
  return step;
}

Todo read_todo(const fs::path& file, int number) {
  const Mapping mapping(
      file, read_yaml(file),
      {"title", "done", "step", "features", "needs", "here_too", "text", "hint", "explanation"});
  return {.number = number,
          .title = mapping.line("title"),
          .done = mapping.line("done"),
          .step = mapping.line("step"),
          .features = mapping.list<std::string>("features"),
          .needs = mapping.has("needs") ? mapping.list<int>("needs") : std::vector<int>{},
          .here_too = mapping.has("here_too") ? mapping.line("here_too") : "",
          .text = mapping.text("text"),
          .hint = mapping.text("hint"),
          .explanation = mapping.text("explanation")};
}

fs::path todo_file(const fs::path& folder, int number) {
  const std::string digits = std::to_string(number);
  return folder / "todos" / ((number < 10 ? "0" : "") + digits + ".yaml");
}

std::vector<Step> read_steps(const fs::path& file, const Mapping& mapping) {
  const auto nodes = mapping.node("steps");
  if (!nodes.IsSequence() || nodes.size() == 0) fail(file, nodes.Mark(), "steps must be a list.");
  std::vector<Step> steps;
  int next_todo = 1;
  for (const auto& node : nodes) {
    steps.push_back(read_step(file, node, static_cast<int>(steps.size()) + 1));
    for (const int todo : steps.back().todos) {
      if (todo != next_todo++) {
        fail(file, node["todos"].Mark(),
             "TODO " + std::to_string(todo) + " stands where TODO " +
                 std::to_string(next_todo - 1) + " is due.");
      }
    }
  }
  return steps;
}

std::map<int, Todo> read_todos(const fs::path& folder, const std::vector<Step>& steps) {
  std::map<int, Todo> todos;
  for (const auto& step : steps) {
    for (const int number : step.todos) {
      const auto file = todo_file(folder, number);
      const auto& todo = todos[number] = read_todo(file, number);
      if (todo.step != step.name) {
        throw Error(file.string() + ": its step is " + todo.step +
                    ", but ladder.yaml lists it in " + step.name + ".");
      }
    }
  }
  for (const auto& [number, todo] : todos) {
    for (const int needed : todo.needs) {
      if (needed != number && todos.contains(needed)) continue;
      throw Error(todo_file(folder, number).string() + ": needs names TODO " +
                  std::to_string(needed) + ", which is not another one of the ladder's.");
    }
  }
  for (const auto& entry : fs::directory_iterator(folder / "todos")) {
    const auto& file = entry.path();
    const bool listed = std::ranges::any_of(
        todos, [&](const auto& todo) { return todo_file(folder, todo.first) == file; });
    if (file.extension() == ".yaml" && !listed) {
      throw Error(file.string() + ": no step in ladder.yaml lists this TODO.");
    }
  }
  return todos;
}

void check_features(const Ladder& ladder, const fs::path& folder) {
  std::vector<std::string> described;
  for (const auto& step : ladder.steps) {
    described.insert(described.end(), step.given.begin(), step.given.end());
  }
  for (const auto& [number, todo] : ladder.todos) {
    described.insert(described.end(), todo.features.begin(), todo.features.end());
  }
  std::vector<std::string> used;
  for (const auto* source : {&ladder.trainer, &ladder.job}) {
    for (const auto& feature : source->features()) {
      used.push_back(feature);
      if (std::ranges::find(described, feature) != described.end()) continue;
      throw Error(source->where(feature) + ": no TODO or step switches the feature " + feature +
                  " on" + did_you_mean(feature, described));
    }
  }
  for (const auto& [number, todo] : ladder.todos) {
    for (const auto& feature : todo.features) {
      if (std::ranges::find(used, feature) != used.end()) continue;
      throw Error(todo_file(folder, number).string() + ": no source has an #if " + feature +
                  did_you_mean(feature, used));
    }
  }
}

void check_places(const Ladder& ladder, const fs::path& folder) {
  for (const auto* source : {&ladder.trainer, &ladder.job}) {
    for (const int todo : source->todos()) {
      if (ladder.todos.contains(todo)) continue;
      throw Error(source->where(todo) + ": there is no TODO " + std::to_string(todo) + ".");
    }
  }
  for (const auto& [number, todo] : ladder.todos) {
    const auto file = todo_file(folder, number).string();
    const auto in_trainer = ladder.trainer.places(number), in_job = ladder.job.places(number);
    if ((in_trainer == 0) == (in_job == 0)) {
      throw Error(file + ": this TODO needs its place in " +
                  (in_job == 0 ? "trainer.cpp or job.sbatch; it has none."
                               : "either trainer.cpp or job.sbatch, not in both."));
    }
    if ((in_trainer + in_job > 1) == todo.here_too.empty()) {
      throw Error(file + ": here_too is for TODOs with several places, and they need it.");
    }
  }
}

// Which lines follow each other, and so whether marks are right, shows when lines are chosen.
void check_marks(const Ladder& ladder) {
  for (const auto& step : ladder.steps) {
    for (const auto which : {Rendering::step, Rendering::solution}) {
      const auto features = features_until(ladder, step, which);
      for (const auto* source : {&ladder.trainer, &ladder.job}) source->select(features);
    }
  }
}

}  // namespace

Ladder load_ladder(const fs::path& folder) {
  const auto file = folder / "ladder.yaml";
  const Mapping settings(file, read_yaml(file), {"steps", "task", "worlds"});
  auto steps = read_steps(file, settings);
  auto todos = read_todos(folder, steps);
  const auto source = [&](const char* name, const char* comment) {
    return Source((folder / name).string(), comment, read_file(folder / name));
  };
  Ladder ladder{std::move(steps),
                std::move(todos),
                source("trainer.cpp", "//"),
                source("job.sbatch", "#"),
                settings.text("task"),
                settings.list<std::vector<size_t>>("worlds")};
  check_features(ladder, folder);
  check_places(ladder, folder);
  check_marks(ladder);
  return ladder;
}

}  // namespace checker
