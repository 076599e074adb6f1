#include "course/load_chapter.hpp"

#include <algorithm>
#include <array>
#include <regex>

#include "course/conditions.hpp"
#include "course/expected.hpp"
#include "course/mapping.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

const std::string kNoParent = "none";

std::map<std::string, std::string> read_models(const fs::path& file, const Mapping& todo) {
  if (!todo.has("models")) return {};
  const Mapping models(file, todo.node("models"), {"best", "final"});
  std::map<std::string, std::string> names;
  for (const auto* model : {"best", "final"}) {
    if (models.has(model)) names[model] = models.line(model);
  }
  return names;
}

Todo read_todo(const fs::path& file, int number) {
  const Mapping mapping(file, read_yaml(file),
                        {"title", "done", "step", "features", "needs", "shows_in", "models",
                         "while_given", "here_too", "text", "hint", "shape", "explanation"});
  return {.number = number,
          .title = mapping.line("title"),
          .done = mapping.line("done"),
          .step = mapping.line("step"),
          .features = mapping.list<std::string>("features"),
          .needs = mapping.has("needs") ? mapping.list<int>("needs") : std::vector<int>{},
          .shows_in = mapping.has("shows_in") ? mapping.node("shows_in").as<int>() : number,
          .models = read_models(file, mapping),
          .while_given = mapping.has("while_given") ? mapping.line("while_given") : "",
          .here_too = mapping.has("here_too") ? mapping.line("here_too") : "",
          .text = mapping.text("text"),
          .hint = mapping.text("hint"),
          .shape = mapping.has("shape") ? mapping.text("shape") : "",
          .explanation = mapping.text("explanation")};
}

FileKind kind_from(const fs::path& file, const YAML::Node& node) {
  const std::array<std::pair<std::string, FileKind>, 3> kinds{
      {{"program", FileKind::program}, {"part", FileKind::part}, {"job", FileKind::job}}};
  const std::string name = node.IsScalar() ? node.Scalar() : "";
  for (const auto& [known, kind] : kinds) {
    if (known == name) return kind;
  }
  fail(file, node.Mark(), "a file is a program, a part of one, or a job.");
}

std::vector<CourseFile> read_files(const fs::path& file, const Mapping& mapping) {
  const auto nodes = mapping.node("files");
  if (!nodes.IsMap() || nodes.size() == 0) fail(file, nodes.Mark(), "files must be a mapping.");
  std::vector<CourseFile> files;
  for (const auto& entry : nodes) {
    const auto name = entry.first.as<std::string>();
    const auto path = file.parent_path() / name;
    const auto kind = kind_from(file, entry.second);
    files.push_back(
        {name, kind, Source(path.string(), kind == FileKind::job ? "#" : "//", read_file(path))});
  }
  return files;
}

// Which of the chapter's files a step is made from: what it says, else all.
std::vector<std::string> files_of_step(const fs::path& file, const Mapping& mapping,
                                       const std::vector<CourseFile>& all) {
  std::vector<std::string> known;
  for (const auto& one : all) known.push_back(one.name);
  const auto files = mapping.has("files") ? mapping.list<std::string>("files") : known;
  const auto mark = mapping.node(mapping.has("files") ? "files" : "name").Mark();
  size_t programs = 0;
  for (const auto& name : files) {
    const auto found = std::ranges::find(all, name, &CourseFile::name);
    if (found == all.end()) {
      fail(file, mark, "the chapter has no file " + name + did_you_mean(name, known));
    }
    if (found->kind == FileKind::program) ++programs;
  }
  if (programs != 1) fail(file, mark, "a step needs exactly one file that is a program.");
  return files;
}

std::vector<int> read_numbers_of_todos(const fs::path& file, const Mapping& mapping) {
  std::vector<int> numbers;
  for (const auto& label : mapping.list<std::string>("todos")) {
    const auto number = todo_labelled(label);
    if (!number) fail(file, mapping.node("todos").Mark(), label + " is not the number of a TODO.");
    numbers.push_back(*number);
  }
  return numbers;
}

std::map<std::string, std::vector<std::string>> read_rules(const fs::path& file,
                                                           const YAML::Node& node) try {
  return node.as<std::map<std::string, std::vector<std::string>>>();
} catch (const YAML::Exception&) {
  fail(file, node.Mark(), "rules must be a mapping: for each stage a list of rules.");
}

ProgramKind kind_of(const fs::path& file, const Mapping& mapping, ProgramKind otherwise) {
  if (!mapping.has("kind")) return otherwise;
  if (mapping.line("kind") == "trainer") return ProgramKind::trainer;
  if (mapping.line("kind") == "plain") return ProgramKind::plain;
  fail(file, mapping.node("kind").Mark(), "a program is a trainer, or plain.");
}

class Reader {
 public:
  Reader(const fs::path& folder, std::string before)
      : folder_(folder), file_(folder / "chapter.yaml"), before_(std::move(before)) {}

  LoadedChapter read() {
    const Mapping settings(file_, read_yaml(file_),
                           {"files", "steps", "task", "kind", "worlds", "plans", "blame", "rules"});
    kind_ = kind_of(file_, settings, ProgramKind::trainer);
    auto& chapter = loaded_.chapter;
    chapter = {.name = folder_.filename().string(),
               .folder = folder_,
               .files = read_files(file_, settings),
               .task = settings.has("task") ? settings.text("task") : "",
               .conditions = read_conditions(file_, settings),
               .rules = read_rules(file_, settings.node("rules")),
               .rules_place = place_of(file_, settings.node("rules").Mark()),
               .blame = read_blame(settings),
               .words = {}};
    if (fs::exists(folder_ / "findings.yaml")) chapter.words.add(folder_ / "findings.yaml");
    read_steps(settings);
    read_todos();
    check_places();
    return std::move(loaded_);
  }

 private:
  std::map<std::string, Blame> read_blame(const Mapping& settings) const {
    std::map<std::string, Blame> table;
    if (!settings.has("blame")) return table;
    for (const auto& entry : settings.node("blame")) {
      auto& blame = table[entry.first.as<std::string>()];
      blame.place = place_of(file_, entry.first.Mark());
      if (!entry.second.IsSequence() || entry.second.size() == 0) {
        fail(file_, entry.second.Mark(), "a list of features is expected here.");
      }
      for (const auto& feature : entry.second) {
        blame.features.push_back(feature.as<std::string>());
      }
    }
    return table;
  }

  void read_steps(const Mapping& settings) {
    const auto nodes = settings.node("steps");
    if (!nodes.IsSequence() || nodes.size() == 0)
      fail(file_, nodes.Mark(), "steps must be a list.");
    int last = 0;
    for (const auto& node : nodes) {
      const auto& step = loaded_.steps.emplace_back(read_step(node));
      before_ = step.name;
      for (const int todo : step.todos) {
        if (todo <= last || (last != 0 && todo != last + 1)) {
          fail(file_, node["todos"].Mark(),
               name_of_todo(todo) + " stands where " + name_of_todo(last + 1) + " is due.");
        }
        last = todo;
      }
    }
  }

  Step read_step(const YAML::Node& node) const {
    const Mapping mapping(file_, node,
                          {"name", "parent", "title", "intro", "run", "todos", "given", "files",
                           "kind", "worlds", "plans", "arguments", "expected", "results", "numbers",
                           "numbers_a_rank", "without", "repair"});
    const auto before = kind_ == ProgramKind::plain ? kNoParent : before_;
    const auto parent = mapping.has("parent") ? mapping.line("parent") : before;
    Step step{.name = mapping.line("name"),
              .chapter = loaded_.chapter.name,
              .parent = parent == kNoParent ? "" : parent,
              .title = mapping.line("title"),
              .intro = mapping.text("intro"),
              .run = mapping.line("run"),
              .todos = read_numbers_of_todos(file_, mapping),
              .given = mapping.has("given") ? mapping.list<std::string>("given")
                                            : std::vector<std::string>{},
              .files = files_of_step(file_, mapping, loaded_.chapter.files),
              .kind = kind_of(file_, mapping, kind_),
              .conditions = read_conditions(file_, mapping)};
    if (step.conditions.empty()) step.conditions = loaded_.chapter.conditions;
    if (step.conditions.empty()) {
      fail(file_, node.Mark(), "a step needs worlds or plans, of its own or of its chapter.");
    }
    if (step.kind == ProgramKind::plain) read_expected(file_, mapping, step);
    if (step.kind == ProgramKind::trainer && loaded_.chapter.task.empty()) {
      fail(file_, node.Mark(), "a trainer is judged with a task; the chapter names none.");
    }
    static const std::regex form("([0-9]{2}|[A-Z][0-9]{1,2})_[a-z0-9_]+");
    if (!std::regex_match(step.name, form)) {
      fail(file_, node.Mark(),
           "the name " + step.name + " must begin with two digits, or a letter and digits, and _.");
    }
    return step;
  }

  void read_todos() {
    auto& todos = loaded_.todos;
    for (const auto& step : loaded_.steps) {
      for (const int number : step.todos) {
        const auto file = todo_file(folder_, number);
        const auto& todo = todos[number] = read_todo(file, number);
        if (todo.step != step.name) {
          throw Error(file.string() + ": its step is " + todo.step +
                      ", but chapter.yaml lists it in " + step.name + ".");
        }
      }
    }
    if (!fs::exists(folder_ / "todos")) return;
    for (const auto& entry : fs::directory_iterator(folder_ / "todos")) {
      const auto& file = entry.path();
      const bool listed = std::ranges::any_of(
          todos, [&](const auto& todo) { return todo_file(folder_, todo.first) == file; });
      if (file.extension() == ".yaml" && !listed) {
        throw Error(file.string() + ": no step in chapter.yaml lists this TODO.");
      }
    }
  }

  void check_places() const {
    for (const auto& file : loaded_.chapter.files) {
      for (const int todo : file.source.todos()) {
        if (loaded_.todos.contains(todo)) continue;
        throw Error(file.source.where(todo) + ": there is no " + name_of_todo(todo) + ".");
      }
    }
    for (const auto& [number, todo] : loaded_.todos) {
      std::vector<std::string> holders;
      size_t places = 0;
      for (const auto& file : loaded_.chapter.files) {
        if (const auto here = file.source.places(number)) {
          holders.push_back(file.name);
          places += here;
        }
      }
      const auto where = todo_file(folder_, number).string();
      if (holders.size() != 1) {
        throw Error(where + ": this TODO needs its place in one of the chapter's files; " +
                    (holders.empty() ? "it has none."
                                     : "it has places in " + join(holders, " and ") + "."));
      }
      if ((places > 1) == todo.here_too.empty()) {
        throw Error(where + ": here_too is for TODOs with several places, and they need it.");
      }
    }
  }

  fs::path folder_, file_;
  std::string before_;
  ProgramKind kind_ = ProgramKind::trainer;  ///< of steps that do not say theirs
  LoadedChapter loaded_;
};

}  // namespace

fs::path todo_file(const fs::path& chapter, int number) {
  return chapter / "todos" / ((number < 10 ? "0" : "") + label_of_todo(number) + ".yaml");
}

LoadedChapter load_chapter(const fs::path& folder, const std::string& before) {
  return Reader(folder, before).read();
}

}  // namespace checker
