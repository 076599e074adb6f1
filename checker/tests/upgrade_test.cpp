// A newer version of the course comes into a clone whose steps were edited.
#include <gmock/gmock.h>

#include "files.hpp"
#include "process/capture.hpp"
#include "state/memory.hpp"
#include "state/merge.hpp"
#include "support/error.hpp"
#include "support/text.hpp"
#include "verbs/verbs.hpp"

namespace checker {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using ::testing::HasSubstr;

const std::string kOld =
    "  const double loss = train(model);\n  fmt::println(\"{}\", loss);\n  // TODO 1: Do it.\n";
const std::string kNew =
    "  // New.\n  const auto score = train(model, task);\n  fmt::println(\"{}\", score);\n"
    "  // TODO 1: Do it well.\n";

TEST(Merge, KeepsEditedWordsAndNewOnes) {
  // On the line that changed, another word than the one that changed.
  EXPECT_EQ(merged_by_words(replaced(kOld, "fmt::println", "print0"), kOld, kNew),
            replaced(kNew, "fmt::println", "print0"));
  // At the same place both added something.
  EXPECT_EQ(merged_by_words("  begin();\n" + kOld, kOld, kNew), "  begin();\n" + kNew);
  EXPECT_EQ(merged_by_words(kOld, kOld, kNew), kNew);
  EXPECT_EQ(merged_by_words(kOld + "end();\n", kOld, kOld), kOld + "end();\n");
}

TEST(Merge, WhereBothChangedTheStudentsWordsStay) {
  EXPECT_THAT(merged_by_words(replaced(kOld, "Do it", "Did it"), kOld, kNew), HasSubstr("Did it"));
}

TEST(Merge, TakesBackslashesAndOtherLetters) {
  const std::string text = "a\\nb \"\\\\\" ü\tx\n\n";
  EXPECT_EQ(merged_by_words(text, text, text), text);
  EXPECT_EQ(merged_by_words(text + "y", text, "z" + text), "z" + text + "y");
}

class UpgradeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    in(origin(), {"init", "--quiet", "--initial-branch=main"});
    commit({{kStep, kOld}, {"README.md", "one\n"}});
    in(folder_.path(), {"clone", "--quiet", origin().string(), clone().string()});
    identify(clone());
  }

  fs::path origin() const { return folder_.path() / "origin"; }
  fs::path clone() const { return folder_.path() / "clone"; }
  Project project() const { return {.source = clone(), .build = clone() / "build"}; }

  static void in(const fs::path& folder, std::vector<std::string> words) {
    fs::create_directories(folder);
    words.insert(words.begin(), "git");
    const auto ran = capture({.arguments = words, .environment = {}, .directory = folder});
    if (!ran.success()) throw Error(join(words, " ") + ": " + ran.output);
  }

  static void identify(const fs::path& folder) {
    in(folder, {"config", "user.name", "A"});
    in(folder, {"config", "user.email", "a@b"});
  }

  void commit(const std::map<std::string, std::string>& files) const {
    identify(origin());
    for (const auto& [file, text] : files) write_file(origin() / file, text);
    in(origin(), {"add", "-A"});
    in(origin(), {"commit", "--quiet", "-m", "x"});
  }

  std::string upgrade(const Arguments& arguments = {}) const {
    ::testing::internal::CaptureStdout();
    const auto problem = error_of([&] { run_upgrade(project(), arguments); });
    return ::testing::internal::GetCapturedStdout() + (problem == "no error" ? "" : problem);
  }

  std::string text(const std::string& file) const { return read_file(clone() / file); }

  static constexpr const char* kStep = "steps/02_setup/train.cpp";
  TemporaryFolder folder_;
};

TEST_F(UpgradeTest, CarriesEditsAndVerdictsOver) {
  const auto edited = replaced(kOld, "fmt::println", "print0");
  write_file(clone() / kStep, edited);
  write_file(clone() / "steps/.progress", R"({"todos": {"1": {"state": "done", "file": ")" +
                                              std::string(kStep) + R"(", "fingerprint": ")" +
                                              fingerprint(edited) + R"("}}})");
  commit({{kStep, kNew}, {"README.md", "two\n"}});
  EXPECT_THAT(upgrade(), HasSubstr(std::string(kStep) + ": your edits are in the new version"));
  const auto merged = replaced(kNew, "fmt::println", "print0");
  EXPECT_EQ(text(kStep), merged);
  EXPECT_EQ(text("README.md"), "two\n");
  EXPECT_EQ(text(std::string(kStep) + ".before-update"), edited);
  EXPECT_EQ(recall(project()).todos.at(1).fingerprint, fingerprint(merged));
  EXPECT_THAT(upgrade(), HasSubstr("This is the newest version"));
}

TEST_F(UpgradeTest, BringsBackWhatAStashTookAway) {
  write_file(clone() / kStep, replaced(kOld, "loss = train", "sum = train"));
  commit({{kStep, "/* new */ " + kOld}});
  EXPECT_THAT(upgrade({"--stash"}), HasSubstr("git has no stash"));
  in(clone(), {"stash", "--quiet"});
  in(clone(), {"pull", "--quiet"});
  upgrade({"--stash"});
  EXPECT_EQ(text(kStep), "/* new */ " + replaced(kOld, "loss = train", "sum = train"));
}

TEST_F(UpgradeTest, AStepThatIsGoneIsKept) {
  write_file(clone() / kStep, "mine\n");
  fs::remove(origin() / kStep);
  commit({{"README.md", "two\n"}});
  EXPECT_THAT(upgrade(), HasSubstr("no longer part of the course; your version is saved as"));
  EXPECT_EQ(text(std::string(kStep) + ".before-update"), "mine\n");
}

TEST_F(UpgradeTest, ChangesNothingWhereItWouldLoseSomething) {
  write_file(clone() / "README.md", "my notes\n");
  write_file(clone() / kStep, "mine\n");
  commit({{kStep, kNew}});
  EXPECT_THAT(upgrade(),
              HasSubstr("You have also changed README.md. Fix: git commit or git stash"));
  EXPECT_EQ(text(kStep), "mine\n");
  in(clone(), {"commit", "--quiet", "-a", "-m", "mine"});
  EXPECT_THAT(upgrade(), HasSubstr("This clone has its own commits. Fix: git pull --rebase"));
  EXPECT_EQ(text(kStep), "mine\n");
  fs::remove_all(clone() / ".git");
  EXPECT_THAT(upgrade(), HasSubstr("This folder is not a git clone."));
}

}  // namespace
}  // namespace checker
