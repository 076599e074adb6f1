#include "box/control_group.hpp"

#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is POSIX's
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

const std::string kName = "worldsize-";

// Where new groups may stand: below our own, or, as version 2 wants no processes beside groups,
// beside it. By controller; version 2's one tree stands for all.
struct Place {
  std::string controllers;  ///< "memory", "pids"; empty: version 2
  fs::path folder;
};

std::vector<Place> places() {
  std::vector<Place> found;
  const fs::path root = "/sys/fs/cgroup";
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "5:memory:/a/b", "0::/a/b"
    const auto fields = split(line, ':');
    if (fields.size() < 3) continue;
    const fs::path own = fs::path(fields[2]).relative_path();
    if (fields[1] == "memory" || fields[1] == "pids") {
      found.push_back({fields[1], root / fields[1] / own});
    } else if (fields[1].empty() && fs::exists(root / "cgroup.controllers")) {
      found.push_back({"", (root / own).parent_path()});
    }
  }
  return found;
}

bool set_limits(const Place& place, const fs::path& folder, uint64_t memory, uint64_t processes) {
  const auto bytes = std::to_string(memory), count = std::to_string(processes);
  if (place.controllers == "pids") return write_in_place(folder / "pids.max", count);
  if (place.controllers == "memory") {
    write_in_place(folder / "memory.swappiness", "0");
    return write_in_place(folder / "memory.limit_in_bytes", bytes);
  }
  write_in_place(place.folder / "cgroup.subtree_control", "+memory +pids");
  write_in_place(folder / "memory.swap.max", "0");
  return write_in_place(folder / "memory.max", bytes) && write_in_place(folder / "pids.max", count);
}

std::vector<pid_t> members(const fs::path& group) {
  std::vector<pid_t> pids;
  std::ifstream file(group / "cgroup.procs");
  for (pid_t pid = 0; file >> pid;) pids.push_back(pid);
  return pids;
}

// Whoever forks meanwhile is met in the next round.
void empty_and_remove(const fs::path& group) {
  for (int round = 0; round < 500; ++round) {
    for (const pid_t pid : members(group)) ::kill(pid, SIGKILL);
    if (::rmdir(group.c_str()) == 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace

ControlGroup::ControlGroup(std::vector<fs::path> folders) : folders_(std::move(folders)) {}

std::unique_ptr<ControlGroup> ControlGroup::make(uint64_t memory, uint64_t processes) {
  static int made = 0;
  const auto name = kName + std::to_string(::getpid()) + "-" + std::to_string(made++);
  std::unique_ptr<ControlGroup> group(new ControlGroup({}));
  bool counts_memory = false;
  for (const auto& place : places()) {
    const auto folder = place.folder / name;
    std::error_code refused;
    if (!fs::create_directory(folder, refused) || refused) continue;
    group->folders_.push_back(folder);
    if (!set_limits(place, folder, memory, processes)) return nullptr;
    counts_memory = counts_memory || place.controllers != "pids";
  }
  return counts_memory ? std::move(group) : nullptr;
}

void ControlGroup::remove_orphans() {
  for (const auto& place : places()) {
    std::error_code absent;
    for (const auto& entry : fs::directory_iterator(place.folder, absent)) {
      const auto name = entry.path().filename().string();
      if (!name.starts_with(kName)) continue;
      const auto owner = whole_number(name.substr(kName.size()), 0);
      if (::kill(owner, 0) != 0 && errno == ESRCH) empty_and_remove(entry.path());
    }
  }
}

ControlGroup::~ControlGroup() {
  for (const auto& folder : folders_) empty_and_remove(folder);
}

std::vector<fs::path> ControlGroup::procs_files() const {
  std::vector<fs::path> files;
  for (const auto& folder : folders_) files.push_back(folder / "cgroup.procs");
  return files;
}

}  // namespace checker
