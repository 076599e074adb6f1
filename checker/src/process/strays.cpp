#include "process/strays.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
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

std::set<pid_t> children() {
  std::set<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    const auto pid = static_cast<pid_t>(std::stol(name));
    if (parent_of(pid) == ::getpid()) found.insert(pid);
  }
  return found;
}

}  // namespace

StrayCatcher::StrayCatcher() : children_before_(children()) {
  ::prctl(PR_GET_CHILD_SUBREAPER, &subreaper_before_);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

StrayCatcher::~StrayCatcher() { ::prctl(PR_SET_CHILD_SUBREAPER, subreaper_before_); }

void StrayCatcher::end() const {
  // The children of a killed stray become ours in turn, hence the rounds. Whoever forks faster than
  // this is not a student's accident.
  for (int round = 0; round < 1000; ++round) {
    bool any = false;
    for (const pid_t pid : children()) {
      if (children_before_.contains(pid)) continue;
      any = true;
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    if (!any) return;
  }
}

}  // namespace checker
