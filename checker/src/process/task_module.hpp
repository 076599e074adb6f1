#pragma once
/// Tasks are modules that trainers load by name. Those that ./workbook start does not build are
/// built when somebody asks for them.
#include <set>
#include <string>
#include <vector>

#include "support/project.hpp"

namespace checker {

/// The targets to build so that a trainer can load this task: {"task_images"}; none for a name that
/// is not a task, which the trainer itself complains about.
std::vector<std::string> targets_of_task(const Project& project, const std::string& task);

/// The same for several tasks.
std::vector<std::string> targets_of_tasks(const Project& project,
                                          const std::set<std::string>& tasks);

/// The same for the task that a trainer's options name; none if they name none.
std::vector<std::string> targets_of_task(const Project& project,
                                         const std::vector<std::string>& trainer_options);

}  // namespace checker
