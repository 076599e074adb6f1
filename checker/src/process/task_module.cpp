#include "process/task_module.hpp"

#include <algorithm>
#include <string_view>

#include "support/files.hpp"

namespace checker {

std::vector<std::string> targets_of_task(const Project& project, const std::string& task) {
  const auto sane = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  if (task.empty() || !std::ranges::all_of(task, sane)) return {};
  const auto file = project.source / "tasks" / task / "CMakeLists.txt";
  if (!std::filesystem::exists(file)) return {};
  // Not every folder beside the tasks is one.
  if (read_file(file).find("worldsize_task(" + task) == std::string::npos) return {};
  return {"task_" + task};
}

std::vector<std::string> targets_of_tasks(const Project& project,
                                          const std::set<std::string>& tasks) {
  std::vector<std::string> targets;
  for (const auto& task : tasks) {
    const auto own = targets_of_task(project, task);
    targets.insert(targets.end(), own.begin(), own.end());
  }
  return targets;
}

std::vector<std::string> targets_of_task(const Project& project,
                                         const std::vector<std::string>& trainer_options) {
  constexpr std::string_view kOption = "--task", kWithValue = "--task=";
  for (size_t i = 0; i < trainer_options.size(); ++i) {
    const auto& word = trainer_options[i];
    if (word.starts_with(kWithValue)) {
      return targets_of_task(project, word.substr(kWithValue.size()));
    }
    if (word == kOption && i + 1 < trainer_options.size()) {
      return targets_of_task(project, trainer_options[i + 1]);
    }
  }
  return {};
}

}  // namespace checker
