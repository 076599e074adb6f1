#include "process/family.hpp"

#include <filesystem>
#include <fstream>
#include <string>

namespace checker {

namespace {

// The fourth field of /proc/<pid>/stat; the second, in parentheses, may hold anything.
pid_t parent_of(pid_t pid) {
  std::ifstream stream("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(stream, text);
  const auto end = text.rfind(')');
  if (end == text.npos || end + 4 >= text.size()) return -1;
  return static_cast<pid_t>(std::strtol(text.c_str() + end + 4, nullptr, 10));
}

}  // namespace

std::set<pid_t> children_of(pid_t parent) {
  std::set<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    const auto pid = static_cast<pid_t>(std::stol(name));
    if (parent_of(pid) == parent) found.insert(pid);
  }
  return found;
}

}  // namespace checker
