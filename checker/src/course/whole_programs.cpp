#include "course/whole_programs.hpp"

#include <algorithm>
#include <set>

#include "course/mapping.hpp"
#include "course/render.hpp"
#include "support/error.hpp"
#include "support/files.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

constexpr const char* kExpected = "expected.yaml";

// "3", "03", "03_sampler"
const Step& step_named(const fs::path& file, const Mapping& mapping, const Course& course) {
  auto name = mapping.line("step");
  if (name.size() == 1) name.insert(0, "0");
  for (const auto& step : course.steps) {
    if (step.name == name || step.label() == name) return step;
  }
  fail(file, mapping.node("step").Mark(), "there is no step " + name + ".");
}

// One of the step, or of the steps before it, whose work a program can spoil.
int todo_so_far(const fs::path& file, const YAML::Node& node, const Course& course,
                const Step& step) {
  const auto known =
      course.todos.find(todo_labelled(node.IsScalar() ? node.Scalar() : "").value_or(0));
  const auto features = features_until(course, step, Rendering::solution);
  const bool done = known != course.todos.end() &&
                    std::ranges::all_of(known->second.features, [&](const std::string& feature) {
                      return features.contains(feature);
                    });
  if (!done) fail(file, node.Mark(), "step " + step.name + " has no TODO " + node.Scalar() + ".");
  return known->first;
}

// The file of the step that this one stands for: a program's by its name, a job script by its end.
const CourseFile* stands_for(const fs::path& file, const Course& course, const Step& step) {
  for (const auto* own : course.files_of(step)) {
    const bool job = own->kind == FileKind::job;
    if (job ? file.extension() == ".sbatch" : file.filename() == own->name) return own;
  }
  return nullptr;
}

void add_files(WholeProgram& program, const fs::path& folder, const Course& course) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto* own = stands_for(entry.path(), course, *program.step);
    if (!own) continue;
    program.job = own->kind == FileKind::job;
    program.files[own->name] = read_file(entry.path());
  }
  if (program.files.empty()) {
    throw Error(folder.string() + ": there is no file of step " + program.step->name + " here.");
  }
}

WholeProgram read_program(const fs::path& folder, const Course& course) {
  const auto file = folder / kExpected;
  const auto node = read_yaml(file);
  const Mapping mapping(file, node, {"step", "verdict", "todo", "or", "why"});
  WholeProgram program;
  program.name = folder.filename().string();
  program.step = &step_named(file, mapping, course);
  program.why = mapping.text("why");
  const auto verdict = mapping.line("verdict");
  if (verdict != "wrong" && verdict != "right") {
    fail(file, mapping.node("verdict").Mark(), "verdict is wrong or right.");
  }
  program.wrong = verdict == "wrong";
  if (program.wrong) program.todo = todo_so_far(file, mapping.node("todo"), course, *program.step);
  if (mapping.has("or")) {
    for (const auto& other : mapping.node("or"))
      program.or_todos.push_back(todo_so_far(file, other, course, *program.step));
  }
  add_files(program, folder, course);
  return program;
}

}  // namespace

std::vector<WholeProgram> load_whole_programs(const fs::path& folder, const Course& course) {
  std::vector<WholeProgram> programs;
  if (!fs::exists(folder)) return programs;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().filename() == kExpected)
      programs.push_back(read_program(entry.path().parent_path(), course));
  }
  std::ranges::sort(programs, {}, &WholeProgram::name);
  const auto same = std::ranges::adjacent_find(programs, {}, &WholeProgram::name);
  if (same != programs.end()) {
    throw Error(folder.string() + ": two programs have the name " + same->name + ".");
  }
  return programs;
}

std::vector<WholeProgram> load_whole_programs(const Course& course) {
  std::vector<WholeProgram> all;
  for (const auto& chapter : course.chapters) {
    for (auto& program : load_whole_programs(chapter.folder / "catalogue" / "rounds", course))
      all.push_back(std::move(program));
  }
  return all;
}

}  // namespace checker
