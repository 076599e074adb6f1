// Tasks that are not to be had, and what people are told of them.
#include <gmock/gmock.h>

#include "errors.hpp"
#include "tasks/registry.hpp"

namespace tasks {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::vector<Row> kOneIsMissing{
    {"language_model", [] { return load_task("language_model"); }},
    {"no_such_task", [] { return load_task("no_such_task"); }},
};

TEST(Modules, AreLoadedByName) {
  const auto entry = load_task("language_model");
  EXPECT_EQ(entry.name, "language_model");
  EXPECT_NE(entry.make, nullptr);
}

TEST(Modules, OfWhichOneIsMissingSaySo) {
  EXPECT_THAT(error_of([] { load_task("no_such_task"); }),
              AllOf(HasSubstr("no_such_task: not built, "), HasSubstr("tasks/no_such_task.so"),
                    HasSubstr("./workbook build")));
}

TEST(Modules, ThatLackALibraryOrAreNoneSaySo) {
  EXPECT_THAT(error_of([] { load_task("lacks_a_library"); }),
              AllOf(HasSubstr("lacks_a_library: cannot be loaded"), HasSubstr("missing_function")));
  EXPECT_THAT(error_of([] { load_task("no_task"); }),
              AllOf(HasSubstr("no_task.so is not a task"), HasSubstr("build again")));
}

TEST(Modules, HavePartsThatAreLoadedByName) {
  EXPECT_NE(load_function("language_model", "worldsize_task"), nullptr);
  EXPECT_THAT(error_of([] { load_function("no_such_part", "worldsize_task"); }),
              AllOf(HasSubstr("no_such_part: cannot be loaded"), HasSubstr("no_such_part.so")));
}

TEST(Modules, OfTasksWithoutTheirLibrarySayWhatFixesIt) {
  EXPECT_EQ(error_of([] { load_task("needs_a_library"); }),
            "needs_a_library needs libsomething, which is not there. Fix: install it.");
  const std::vector<Row> table{kOneIsMissing.front(),
                               {"needs_a_library", [] { return load_task("needs_a_library"); }}};
  EXPECT_THAT(
      help_text(table, table.front().entry(), "laptop"),
      AllOf(HasSubstr("laptop deep seed"), HasSubstr("  needs_a_library needs libsomething")));
}

TEST(Modules, TheHelpShowsTheOthers) {
  const auto text = help_text(kOneIsMissing, kOneIsMissing.front().entry(), "laptop");
  EXPECT_THAT(text, AllOf(HasSubstr("laptop deep seed"), HasSubstr("no_such_task: not built, ")));
}

}  // namespace
}  // namespace tasks
