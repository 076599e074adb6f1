// Which module a trainer needs beside itself.
#include "process/task_module.hpp"

#include <gmock/gmock.h>

namespace checker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using CommandWords = std::vector<std::string>;

TEST(TaskModule, IsThatOfTheTaskThatOptionsName) {
  const auto project = find_project();
  EXPECT_THAT(targets_of_task(project, CommandWords{"--epochs", "1", "--task", "signals"}),
              ElementsAre("task_signals"));
  EXPECT_THAT(targets_of_task(project, CommandWords{"--task=weather", "--epochs=1"}),
              ElementsAre("task_weather"));
  EXPECT_THAT(targets_of_task(project, CommandWords{"--epochs", "1"}), IsEmpty());
  EXPECT_THAT(targets_of_task(project, CommandWords{"--task"}), IsEmpty());
}

TEST(TaskModule, OfWhatIsNoTaskThereIsNone) {
  const auto project = find_project();
  for (const auto* name :
       {"", "nothing", "operators", "instrumentation", "../tasks/signals", "."}) {
    EXPECT_THAT(targets_of_task(project, std::string(name)), IsEmpty()) << name;
  }
}

TEST(TaskModule, OfSeveralTasksThereAreSeveral) {
  EXPECT_THAT(targets_of_tasks(find_project(), {"images", "language_model", "nothing"}),
              ElementsAre("task_images", "task_language_model"));
}

}  // namespace
}  // namespace checker
