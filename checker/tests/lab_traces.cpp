#include "lab_traces.hpp"

#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "process/family.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker::testing {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

std::set<std::string> namespaces_of(const std::string& process) {
  std::set<std::string> found;
  for (const auto* kind : {"pid", "mnt", "net", "uts", "ipc"}) {
    std::error_code error;
    const auto name = fs::read_symlink("/proc/" + process + "/ns/" + kind, error);
    if (!error) found.insert(name);
  }
  return found;
}

void collect(pid_t process, std::set<std::string>& found) {
  found.merge(namespaces_of(std::to_string(process)));
  for (const pid_t child : children_of(process)) collect(child, found);
}

std::string processes_in(const std::set<std::string>& namespaces) {
  std::string found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const auto process = entry.path().filename().string();
    if (process.find_first_not_of("0123456789") != process.npos) continue;
    if (is_zombie(std::stoi(process))) continue;
    for (const auto& name : namespaces_of(process)) {
      if (namespaces.contains(name)) found += name + " is process " + process + "'s\n";
    }
  }
  return found;
}

}  // namespace

std::set<std::string> namespaces_below(pid_t first_process) {
  std::set<std::string> found;
  collect(first_process, found);
  for (const auto& ours : namespaces_of("self")) found.erase(ours);
  return found;
}

std::string traces_of(const std::set<std::string>& namespaces, const std::string& folder) {
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  std::string left;
  while (!(left = processes_in(namespaces)).empty()) {
    if (std::chrono::steady_clock::now() > deadline) break;
    std::this_thread::sleep_for(20ms);
  }
  for (const auto& line : split_lines(read_file("/proc/self/mountinfo"))) {
    if (line.find(folder) != line.npos) left += "mounted: " + line + "\n";
  }
  return left;
}

}  // namespace checker::testing
