#include "state/memory.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "judge/names.hpp"
#include "support/error.hpp"
#include "support/files.hpp"

namespace checker {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

fs::path memory_file(const Project& project) { return project.source / "steps" / ".progress"; }

json empty_memory() { return {{"todos", json::object()}}; }

std::string set_aside(const Project& project, const fs::path& file) {
  const fs::path broken = file.string() + ".broken";
  std::error_code error;
  fs::rename(file, broken, error);
  return project.shown(file) + " could not be read" +
         (error ? " and cannot be moved: " + error.message() + "."
                : "; moved it to " + project.shown(broken) +
                      ". Earlier verdicts are lost. Your files are unchanged.");
}

// Nothing if the file is there but cannot be read: then it must not be written either.
std::optional<json> read_memory(const Project& project, std::string& remark) {
  const auto file = memory_file(project);
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return empty_memory();
  std::string text;
  try {
    text = read_file(file);
  } catch (const Error& error) {
    remark = error.what();
    return std::nullopt;
  }
  auto memory = json::parse(text, nullptr, false);
  if (memory.is_object() && memory.contains("todos") && memory["todos"].is_object()) return memory;
  remark = set_aside(project, file);
  return empty_memory();
}

void write_memory(const Project& project, const json& memory) {
  write_file(memory_file(project),
             memory.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

std::string text_in(const json& entry, const char* key) {
  const auto value = entry.find(key);
  return value != entry.end() && value->is_string() ? value->get<std::string>() : "";
}

std::optional<int> number_in(const std::string& key) {
  int number = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
  if (error != std::errc() || end != key.data() + key.size()) return std::nullopt;
  return number;
}

// A program that does not compile says nothing about its TODOs.
std::map<int, Verdict> own_verdicts(const Step& step, const Report& report) {
  std::map<int, Verdict> verdicts;
  for (const int todo : step.todos) {
    if (!report.compile_error) break;
    verdicts[todo] = {todo, State::not_judged, {}, "the program does not compile"};
  }
  for (const auto& verdict : report.verdicts) {
    const bool own = std::ranges::find(step.todos, verdict.todo) != step.todos.end();
    if (own && !report.compile_error) verdicts[verdict.todo] = verdict;
  }
  return verdicts;
}

// It matters less than what was asked for.
void write_if_possible(const Project& project, const json& memory) {
  try {
    write_memory(project, memory);
  } catch (const Error&) {
    return;
  }
}

constexpr std::array<const char*, 4> names_of_help{"none", "hint", "shape", "answer"};

// What is noted under this name; an empty object if there is nothing of use.
json object_in(const json& memory, const char* name) {
  const auto found = memory.find(name);
  return found != memory.end() && found->is_object() ? *found : json::object();
}

Help help_of(const json& help, const std::string& key) {
  const auto name = text_in(help, key.c_str());
  const auto found = std::ranges::find(names_of_help, name);
  return found == names_of_help.end() ? Help::none
                                      : static_cast<Help>(found - names_of_help.begin());
}

}  // namespace

Memory recall(const Project& project) {
  Memory memory;
  const auto read = read_memory(project, memory.remark);
  if (!read) return memory;
  for (const auto& [key, entry] : read->at("todos").items()) {
    const auto number = number_in(key);
    if (!number || !entry.is_object()) continue;
    // A state that only a newer version knows is none here.
    const auto state = state_named(text_in(entry, "state"));
    if (!state) continue;
    memory.todos[*number] = {*state, text_in(entry, "file"), text_in(entry, "fingerprint"),
                             text_in(entry, "reason")};
  }
  const auto help = object_in(*read, "help");
  for (const auto& [key, ignored] : help.items()) {
    if (const auto number = number_in(key)) memory.help[*number] = help_of(help, key);
  }
  const auto quiz = object_in(*read, "quiz");
  for (const auto& [name, right] : quiz.items()) {
    if (right.is_boolean()) memory.quiz[name] = right.get<bool>();
  }
  return memory;
}

std::string remember(const Project& project, const Course& course, const Report& report,
                     const Fingerprints& fingerprints) {
  std::string remark;
  auto memory = read_memory(project, remark);
  if (!memory) return remark;
  for (const auto& [number, verdict] : own_verdicts(course.step(report.step), report)) {
    const auto file = course.file_of(course.todos.at(number));
    const auto print = fingerprints.find(file);
    auto& entry = (*memory)["todos"][std::to_string(number)];
    entry = {{"state", name_of(verdict.state)},
             {"file", file.generic_string()},
             {"fingerprint", print == fingerprints.end() ? "" : print->second}};
    if (!verdict.reason.empty()) entry["reason"] = verdict.reason;
  }
  try {
    write_memory(project, *memory);
  } catch (const Error& error) {
    remark = std::string(error.what()) + " The verdict was not saved.";
  }
  return remark;
}

void remember_help(const Project& project, const std::vector<int>& todos, Help help) {
  std::string ignored;
  auto memory = read_memory(project, ignored);
  if (!memory) return;
  auto noted = object_in(*memory, "help");
  for (const int todo : todos) {
    const auto key = std::to_string(todo);
    if (help_of(noted, key) < help) noted[key] = names_of_help.at(static_cast<size_t>(help));
  }
  if (noted == object_in(*memory, "help")) return;
  (*memory)["help"] = noted;
  write_if_possible(project, *memory);
}

void remember_answer(const Project& project, const std::string& question, bool right) {
  std::string ignored;
  auto memory = read_memory(project, ignored);
  if (!memory) return;
  auto noted = object_in(*memory, "quiz");
  noted[question] = right;
  (*memory)["quiz"] = noted;
  write_if_possible(project, *memory);
}

void follow(const Project& project, const std::string& file, const std::string& old_fingerprint,
            const std::string& new_fingerprint) {
  std::string ignored;
  auto memory = read_memory(project, ignored);
  if (!memory) return;
  for (auto& [key, entry] : memory->at("todos").items()) {
    if (!entry.is_object() || text_in(entry, "file") != file) continue;
    if (text_in(entry, "fingerprint") == old_fingerprint) entry["fingerprint"] = new_fingerprint;
  }
  write_memory(project, *memory);
}

}  // namespace checker
