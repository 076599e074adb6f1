#include "process/family.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

namespace checker {

namespace {

std::string first_line(pid_t pid, const char* file) {
  std::ifstream stream("/proc/" + std::to_string(pid) + "/" + file);
  std::string text;
  std::getline(stream, text);
  return text;
}

std::string stat_fields(pid_t pid) {
  return checker::stat_fields("/proc/" + std::to_string(pid) + "/stat");
}

pid_t parent_of(pid_t pid) {
  const auto fields = stat_fields(pid);
  return fields.empty() ? -1 : static_cast<pid_t>(std::strtol(fields.c_str() + 2, nullptr, 10));
}

// Of every process, its parent.
std::map<pid_t, pid_t> parents() {
  std::map<pid_t, pid_t> all;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    const auto pid = static_cast<pid_t>(std::stol(name));
    all[pid] = parent_of(pid);
  }
  return all;
}

}  // namespace

std::string stat_fields(const std::filesystem::path& stat) {
  std::ifstream file(stat);
  std::string text;
  std::getline(file, text, '\0');    // which, unlike others, does not throw if it ends meanwhile
  const auto end = text.rfind(')');  // of the second field, the name, which may hold anything
  return end == text.npos || end + 4 >= text.size() ? "" : text.substr(end + 2);
}

std::string name_of(pid_t process) { return first_line(process, "comm"); }

std::string command_line_of(pid_t process) {
  auto text = first_line(process, "cmdline");
  std::ranges::replace(text, '\0', ' ');
  return text;
}

bool is_zombie(pid_t process) { return stat_fields(process).starts_with('Z'); }

std::set<pid_t> children_of(pid_t parent) {
  std::set<pid_t> found;
  for (const auto& [pid, its_parent] : parents()) {
    if (its_parent == parent) found.insert(pid);
  }
  return found;
}

std::set<pid_t> families_of(const std::vector<pid_t>& processes) {
  const auto all = parents();
  std::set<pid_t> family(processes.begin(), processes.end());
  for (size_t before = 0; before != family.size();) {
    before = family.size();
    for (const auto& [pid, parent] : all) {
      if (family.contains(parent)) family.insert(pid);
    }
  }
  return family;
}

}  // namespace checker
